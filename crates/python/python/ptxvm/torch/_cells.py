"""The fused cells of recurrent networks, which PyTorch has for CUDA only, as sums and products.

The equations are those of ``torch.nn.LSTMCell`` and ``torch.nn.GRUCell``. What a forward function keeps for the backward one
is its own matter.
"""

import torch


def lstm_cell(input_gates, hidden_gates, cx, input_bias=None, hidden_bias=None):
    """``aten::_thnn_fused_lstm_cell``: new hidden state, new cell state, and the gates for the backward function."""
    gates = input_gates + hidden_gates
    if input_bias is not None:
        gates = gates + input_bias
    if hidden_bias is not None:
        gates = gates + hidden_bias
    enter, forget, cell, leave = gates.chunk(4, 1)
    enter, forget, cell, leave = enter.sigmoid(), forget.sigmoid(), cell.tanh(), leave.sigmoid()
    cy = forget * cx + enter * cell
    return leave * cy.tanh(), cy, torch.cat([enter, forget, cell, leave], 1)


def lstm_cell_backward(grad_hy, grad_cy, cx, cy, workspace, has_bias):
    """``aten::_thnn_fused_lstm_cell_backward_impl``: gradients of gates, cell state and bias."""
    if grad_hy is None and grad_cy is None:
        return None, None, None
    enter, forget, cell, leave = workspace.chunk(4, 1)
    tanh = cy.tanh()
    grad_hy = torch.zeros_like(cx) if grad_hy is None else grad_hy
    grad_cx = grad_hy * leave * (1 - tanh * tanh)
    if grad_cy is not None:
        grad_cx = grad_cx + grad_cy
    gates = [
        grad_cx * cell * enter * (1 - enter),
        grad_cx * cx * forget * (1 - forget),
        grad_cx * enter * (1 - cell * cell),
        grad_hy * tanh * leave * (1 - leave),
    ]
    grad_gates = torch.cat(gates, 1)
    return grad_gates, grad_cx * forget, grad_gates.sum(0) if has_bias else None


def gru_cell(input_gates, hidden_gates, hx, input_bias=None, hidden_bias=None):
    """``aten::_thnn_fused_gru_cell``: new hidden state, and what the backward function needs."""
    if input_bias is not None:
        input_gates, hidden_gates = input_gates + input_bias, hidden_gates + hidden_bias
    input_reset, input_update, input_new = input_gates.chunk(3, 1)
    hidden_reset, hidden_update, hidden_new = hidden_gates.chunk(3, 1)
    reset, update = (input_reset + hidden_reset).sigmoid(), (input_update + hidden_update).sigmoid()
    new = (input_new + reset * hidden_new).tanh()
    return new + update * (hx - new), torch.cat([reset, update, new, hx, hidden_new], 1)


def gru_cell_backward(grad_hy, workspace, has_bias):
    """``aten::_thnn_fused_gru_cell_backward``: gradients of both gates, hidden state and both biases."""
    reset, update, new, hx, hidden_new = workspace.chunk(5, 1)
    grad_update = grad_hy * (hx - new) * update * (1 - update)
    grad_new = grad_hy * (1 - update) * (1 - new * new)
    grad_reset = grad_new * hidden_new * reset * (1 - reset)
    grad_input = torch.cat([grad_reset, grad_update, grad_new], 1)
    grad_hidden = torch.cat([grad_reset, grad_update, grad_new * reset], 1)
    biases = (grad_input.sum(0), grad_hidden.sum(0)) if has_bias else (None, None)
    return grad_input, grad_hidden, grad_hy * update, *biases
