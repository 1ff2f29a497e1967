// Starts `ptxvm lsp` for PTX files. All that it shows comes from there.
const { workspace } = require('vscode');
const { LanguageClient } = require('vscode-languageclient/node');

let client;

function activate() {
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
  return client.start();
}

function deactivate() {
  return client?.stop();
}

module.exports = { activate, deactivate };
