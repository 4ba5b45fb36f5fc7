// `client.js https|undici BASE FILE STEP...`: what `support/programs.py` describes, with node's own
// https over an agent that asks for tunnels, or with undici's ProxyAgent.
"use strict";

const crypto = require("crypto");
const fs = require("fs");
const http = require("http");
const https = require("https");
const tls = require("tls");

const proxy = new URL(process.env.HTTPS_PROXY);

// The field that proves to the proxy who is asking.
function proof() {
  const token = process.env.PROXY_TOKEN;
  if (token) return { "Proxy-Authorization": `Bearer ${token}` };
  if (!proxy.username) return {};
  const pair = `${decodeURIComponent(proxy.username)}:${decodeURIComponent(proxy.password)}`;
  return { "Proxy-Authorization": `Basic ${Buffer.from(pair).toString("base64")}` };
}

// An agent whose connections are TLS in tunnels through the proxy.
class TunnelAgent extends https.Agent {
  createConnection(options, done) {
    const authority = `${options.host}:${options.port}`;
    const asked = http.request({
      host: proxy.hostname, port: proxy.port, method: "CONNECT", path: authority,
      headers: { Host: authority, ...proof() },
    });
    asked.once("error", done);
    asked.once("connect", (answer, socket) => {
      if (answer.statusCode !== 200) {
        socket.destroy();
        return done(new Error(`CONNECT: ${answer.statusCode} ${answer.statusMessage}`));
      }
      done(null, tls.connect({ ...options, socket, servername: options.host }));
    });
    asked.end();
  }
}

function withHTTPS() {
  const agent = new TunnelAgent({ keepAlive: true, maxSockets: 1 });
  return (method, url, data) => new Promise((resolve, reject) => {
    const asked = https.request(url, { method, agent }, (answer) => {
      const parts = [];
      answer.on("data", (part) => parts.push(part));
      answer.once("error", reject);
      answer.once("end", () => resolve([answer.statusCode, Buffer.concat(parts)]));
    });
    asked.once("error", reject);
    asked.end(data);
  });
}

function withUndici() {
  const { ProxyAgent, request } = require("undici");
  const token = proof()["Proxy-Authorization"];
  const pem = process.env.PROXY_CERTIFICATE && fs.readFileSync(process.env.PROXY_CERTIFICATE);
  const dispatcher = new ProxyAgent({
    uri: `${proxy.protocol}//${proxy.host}`, token, connections: 1,
    proxyTls: pem ? { cert: pem, key: pem } : undefined,
  });
  return async (method, url, body) => {
    const answer = await request(url, { method, dispatcher, body });
    return [answer.statusCode, Buffer.from(await answer.body.arrayBuffer())];
  };
}

async function main([kind, base, file, ...steps]) {
  const ask = kind === "https" ? withHTTPS() : withUndici();
  const data = fs.readFileSync(file);
  for (const step of steps) {
    const [, method, path] = step.match(/^(\w+):(.*)$/);
    const [status, body] = await ask(method, base + path, method === "PUT" ? data : undefined);
    console.log(status, body.length, crypto.createHash("sha256").update(body).digest("hex"));
  }
}

main(process.argv.slice(2)).then(() => process.exit(0), (error) => {
  console.error(error);
  process.exit(1);
});
