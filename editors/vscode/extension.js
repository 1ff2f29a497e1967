// Starts `ptxvm lsp` for PTX files and `ptxvm debug --dap` for kernels. All that it shows comes from there.
const { DebugAdapterExecutable, debug, workspace } = require('vscode');
const { LanguageClient } = require('vscode-languageclient/node');

let client;

function activate(context) {
  const settings = workspace.getConfiguration('ptxvm');
  const server = { command: settings.get('path'), args: ['lsp'] };
  client = new LanguageClient('ptxvm', 'PTX', server, {
    documentSelector: [{ language: 'ptx' }],
    initializationOptions: {
      target: settings.get('target') || null,
      lenient: settings.get('lenient'),
      relocatable: settings.get('relocatable'),
    },
  });
  const createDebugAdapterDescriptor = () => new DebugAdapterExecutable(settings.get('path'), ['debug', '--dap']);
  context.subscriptions.push(debug.registerDebugAdapterDescriptorFactory('ptxvm', { createDebugAdapterDescriptor }));
  return client.start();
}

function deactivate() {
  return client?.stop();
}

module.exports = { activate, deactivate };
