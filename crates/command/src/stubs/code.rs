//! The machine code of a stub: each function names itself on its first call, and returns an error.
//!
//! A function hands its message and the byte that remembers its first call to code that all share, which writes the
//! message to the standard error by a system call: a stub needs no other library.

use object::elf;

/// Code of a stub for a machine.
pub struct Code {
    /// The bytes of one function.
    pub stride: u64,
    function: fn(Function) -> Vec<u8>,
    shared: fn(Returned) -> Vec<u8>,
}

/// What a function returns.
#[derive(Clone, Copy)]
pub enum Returned {
    /// The code of an error.
    Error(u16),
    /// Its message, for functions that return text.
    Message,
    /// 0, and its message in the place that the second argument points to.
    MessageInPlace,
}

/// Where things are for one function, relative to its first byte.
#[derive(Clone, Copy)]
pub struct Function {
    /// The message.
    pub message: i32,
    /// Its length in bytes.
    pub length: u16,
    /// The byte that is 1 after the first call.
    pub called: i32,
    /// The shared code.
    pub shared: i32,
}

impl Code {
    /// The code for a machine, if it is known.
    pub fn for_machine(machine: u16) -> Option<Code> {
        match machine {
            elf::EM_X86_64 => Some(Code { stride: 32, function: x86_64, shared: shared_x86_64 }),
            elf::EM_AARCH64 => Some(Code { stride: 20, function: aarch64, shared: shared_aarch64 }),
            _ => None,
        }
    }

    /// The code of a function, as long as the stride.
    pub fn function(&self, function: Function) -> Vec<u8> {
        let mut code = (self.function)(function);
        code.resize(self.stride as usize, 0);
        code
    }

    /// The code that functions with the same result share.
    pub fn shared(&self, returned: Returned) -> Vec<u8> {
        (self.shared)(returned)
    }
}

fn x86_64(of: Function) -> Vec<u8> {
    // Distances are from the end of an instruction.
    let mut code = vec![0x49, 0x89, 0xf0]; // mov r8, rsi
    code.extend([0x48, 0x8d, 0x35]); // lea rsi, [rip + message]
    code.extend((of.message - 10).to_le_bytes());
    code.extend([0x48, 0x8d, 0x3d]); // lea rdi, [rip + called]
    code.extend((of.called - 17).to_le_bytes());
    code.push(0xba); // mov edx, length
    code.extend(u32::from(of.length).to_le_bytes());
    code.push(0xe9); // jmp shared
    code.extend((of.shared - 27).to_le_bytes());
    code
}

fn shared_x86_64(returned: Returned) -> Vec<u8> {
    let mut code = vec![
        0xb0, 0x01, // mov al, 1
        0x86, 0x07, // xchg [rdi], al
        0x84, 0xc0, // test al, al
        0x75, 0x0c, // jne past the call
        0xbf, 0x02, 0, 0, 0, // mov edi, 2 (standard error)
        0xb8, 0x01, 0, 0, 0, // mov eax, 1 (write)
        0x0f, 0x05, // syscall
    ];
    match returned {
        Returned::Error(number) => {
            code.push(0xb8); // mov eax, number
            code.extend(u32::from(number).to_le_bytes());
        }
        Returned::Message => code.extend([0x48, 0x89, 0xf0]), // mov rax, rsi
        Returned::MessageInPlace => code.extend([0x49, 0x89, 0x30, 0x31, 0xc0]), // mov [r8], rsi; xor eax, eax
    }
    code.push(0xc3); // ret
    code
}

fn aarch64(of: Function) -> Vec<u8> {
    let adr = |register: u32, distance: i32| {
        let distance = distance.cast_unsigned();
        0x1000_0000 | (distance & 3) << 29 | (distance >> 2 & 0x7_ffff) << 5 | register
    };
    let words = [
        0xaa01_03e5,                                                        // mov x5, x1
        adr(1, of.message - 4),                                             // adr x1, message
        adr(3, of.called - 8),                                              // adr x3, called
        0x5280_0002 | u32::from(of.length) << 5,                            // mov w2, length
        0x1400_0000 | ((of.shared - 16) >> 2).cast_unsigned() & 0x3ff_ffff, // b shared
    ];
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn shared_aarch64(returned: Returned) -> Vec<u8> {
    let mut words = vec![
        0x3940_0064, // ldrb w4, [x3]
        0x3500_00c4, // cbnz w4, past the call
        0x5280_0024, // mov w4, 1
        0x3900_0064, // strb w4, [x3]
        0xd280_0040, // mov x0, 2 (standard error)
        0xd280_0808, // mov x8, 64 (write)
        0xd400_0001, // svc 0
    ];
    match returned {
        Returned::Error(number) => words.push(0x5280_0000 | u32::from(number) << 5), // mov w0, number
        Returned::Message => words.push(0xaa01_03e0),                                // mov x0, x1
        Returned::MessageInPlace => words.extend([0xf900_00a1, 0x5280_0000]), // str x1, [x5]; mov w0, 0
    }
    words.push(0xd65f_03c0); // ret
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What LLVM's assembler makes of the same instructions. (The code for x86-64 is executed by a test of the command.)
    #[test]
    fn instructions_of_aarch64_are_as_assembled() {
        let code = Code::for_machine(elf::EM_AARCH64).unwrap();
        let function = Function { message: 0x12349, length: 77, called: 0x234b, shared: 0x1004 };
        let words = |bytes: Vec<u8>| -> Vec<u32> {
            bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
        };
        assert_eq!(
            words(code.function(function)),
            [0xaa01_03e5, 0x3009_1a21, 0x7001_1a03, 0x5280_09a2, 0x1400_03fd]
        );
        let expected =
            [0x3940_0064, 0x3500_00c4, 0x5280_0024, 0x3900_0064, 0xd280_0040, 0xd280_0808, 0xd400_0001];
        let shared = words(code.shared(Returned::Error(3000)));
        assert_eq!((&shared[..7], &shared[7..]), (&expected[..], &[0x5281_7700, 0xd65f_03c0][..]));
        assert_eq!(words(code.shared(Returned::Message))[7..], [0xaa01_03e0, 0xd65f_03c0]);
        assert_eq!(
            words(code.shared(Returned::MessageInPlace))[7..],
            [0xf900_00a1, 0x5280_0000, 0xd65f_03c0]
        );
    }
}
