// Starts `evermat lsp` for files of rules.

const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

exports.activate = async function activate() {
  const command = vscode.workspace.getConfiguration("evermat").get("command");
  client = new LanguageClient("evermat", "Evermat", { command, args: ["lsp"] }, { documentSelector: [{ language: "evermat" }] });
  await client.start();
};

exports.deactivate = () => client?.stop();
