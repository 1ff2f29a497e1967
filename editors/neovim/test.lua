-- Drives Neovim's own client against `ptxvm lsp`, without a screen: `.ci/editor` runs it. It ends Neovim with 0 if all went well.
local server = os.getenv('SERVER')
local folder = os.getenv('FOLDER')

local function fail(why)
  io.stderr:write('failed: ' .. why .. '\n')
  vim.cmd('cquit 1')
end
local function check(ok, why) if not ok then fail(why) end end
local function lines() return vim.api.nvim_buf_get_lines(0, 0, -1, false) end
-- Waits for what the server does.
local function wait(why, done) check(vim.wait(10000, done, 10), 'nothing came: ' .. why) end

local text = {
  '.version 8.5', '.target sm_90', '.address_size 64',
  '.visible .entry k(.param .u64 out)', '{',
  '    .reg .b32 %r<4>; .reg .b32 sum; .reg .b64 %rd<3>;',
  '    ld.param.u64 %rd1, [out];',
  '    /* \xf0\x9f\x98\x80 */ mvo.u32 sum, %tid.x;',
  '    st.global.u32 [%rd1], sum; // kept',
  '    ret;', '}',
}
local path = folder .. '/k.ptx'
vim.fn.writefile(text, path)
vim.cmd('edit ' .. path)
local id = vim.lsp.start_client({ name = 'ptxvm', cmd = { server, 'lsp' }, root_dir = folder })
check(id and vim.lsp.buf_attach_client(0, id), 'the client starts')
local client = vim.lsp.get_client_by_id(id)

local function ask(method, params)
  local answer = client.request_sync(method, params, 10000, 0)
  check(answer and not answer.err, method .. ': ' .. vim.inspect(answer and answer.err))
  return answer.result
end
local function at(line, column)
  vim.api.nvim_win_set_cursor(0, { line, column })
  return vim.lsp.util.make_position_params(0, client.offset_encoding)
end

wait('diagnostics', function() return #vim.diagnostic.get(0) == 1 end)
local found = vim.diagnostic.get(0)[1]
check(found.lnum == 7 and found.col == 15, 'the error is behind a character of two units: ' .. vim.inspect(found))
check(found.message:find('mvo') and found.message:find("did you mean 'mov'"), found.message)
-- The fix.
local params = at(8, 16)
local place = params.position
params.range, params.context = { start = place, ['end'] = place }, { diagnostics = {} }
local actions = ask('textDocument/codeAction', params)
check(actions[1].title == 'Replace `mvo` with `mov`', vim.inspect(actions))
vim.lsp.util.apply_workspace_edit(actions[1].edit, client.offset_encoding)
check(lines()[8]:find('mov.u32 sum', 1, true), lines()[8])
wait('the file is clean', function() return #vim.diagnostic.get(0) == 0 end)

local hover = ask('textDocument/hover', at(8, 16))
check(hover.contents.value:find('PTX manual', 1, true), vim.inspect(hover))

local jump = ask('textDocument/definition', at(9, 28))
check(vim.lsp.util.jump_to_location(jump, client.offset_encoding), 'it jumps')
local cursor = vim.api.nvim_win_get_cursor(0)
check(cursor[1] == 6 and cursor[2] == 31, 'to the declaration: ' .. vim.inspect(cursor))

params = at(8, 24)
params.newName = 'total'
vim.lsp.util.apply_workspace_edit(ask('textDocument/rename', params), client.offset_encoding)
check(lines()[6]:find('.b32 total;', 1, true) and lines()[9]:find('], total;', 1, true), table.concat(lines(), '\n'))

if vim.lsp.buf.format then vim.lsp.buf.format({ async = false }) else vim.lsp.buf.formatting_sync(nil, 10000) end
wait('the layout', function() return vim.tbl_contains(lines(), '\tret;') end)
check(vim.tbl_contains(lines(), '\tst.global.u32 [%rd1], total; // kept'), table.concat(lines(), '\n'))
check(#vim.diagnostic.get(0) == 0, 'still clean')

vim.lsp.stop_client(id)
vim.cmd('qall!')
