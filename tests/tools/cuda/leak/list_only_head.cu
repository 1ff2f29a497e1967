// A list of nodes made by new: only its head is deleted.
//
// RUN: --block 4 --arg u32[4]
// FIND: device-leak
struct Node {
    unsigned value;
    Node* next;
};

extern "C" __global__ void kernel(unsigned* out) {
    Node* head = nullptr;
    for (unsigned i = 0; i < 3; i++) {
        Node* node = new Node; // SITE
        node->value = i + threadIdx.x;
        node->next = head;
        head = node;
    }
    unsigned sum = 0;
    for (Node* node = head; node; node = node->next) sum += node->value;
    out[threadIdx.x] = sum;
    delete head; // BUG
    while (head) { // FIX
        Node* next = head->next; // FIX
        delete head; // FIX
        head = next; // FIX
    } // FIX
}
