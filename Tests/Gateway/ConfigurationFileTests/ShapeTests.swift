import PinfoldConfiguration
import TestSupport
import Testing

@testable import Gateway

/// A configuration as users write it, with everything that is supported.
let fullConfiguration = """
    workers: auto

    listeners:
      - name: proxy
        address: 127.0.0.1:8080
        kind: forward
        http2: off
      - name: payments
        address: 127.0.0.1:8081
        kind: reverse
        upstream: https://api.example.com

    admin:
      address: 127.0.0.1:9090
      tokenFile: admin.token

    access:
      clients: ["127.0.0.0/8", "::1/128"]
      connectPorts: [443]             # or "any"
      destinations:
        allow: [10.0.0.0/8, 192.0.2.1, "*.lab.example:8443"]
        deny: ["**.ads.example"]

    hosts:
      - match: ["api.example.com", "*.pay.example.com", "**.corp.example.com:8443"]
        name: payments-api
        upgrade: https
        tunnel: pass
        pinsets: [payments, "own-ca"]
        tls:
          minimum: "1.2"
          roots: [system, corp-ca.pem]
        request:
          timeout: 30s
          cachePolicy: returnCacheElseLoad
          headers:
            defaults: { User-Agent: Legacy/1.0 }
            set: { X-Gateway: pinfold }
            add: { X-Tag: [a, b] }
            remove: [X-Debug]
            rename: { X-Old: X-New }
          authorization: { basic: { user: api, passwordFile: admin.token }, clearText: refuse }
          path: { prefixes: { /old: /new } }
          query: { set: { "a b": "c&d" }, remove: [debug] }
          parameters: byMethod
          body: { from: form, to: json, maximum: 1MiB, noTransform: refuse }
        response:
          statusCodes: ["200-299", "304"]
          contentTypes: [application/json]
          validate: json
          schema: reply.schema.json
          body: { from: json, to: plist, propertyList: binary, maximum: 8MiB, larger: pass }
        timeouts: { connect: 2s, body: 2m, tunnel: 1h, eventStream: 1d }
        cache: { store: true, key: [Accept-Language] }
        probe: { interval: 30s, path: /health }
      - match: ["[2001:db8::1]:443", 192.0.2.7]
        tunnel: refuse
        pins: off
        http2: off
        response:
          image:
            accept: [image/png, image/jpeg]
            convert: { image/webp: image/png }
            maximumPixels: 1000000
            scale: { width: 640, height: 480 }
          noTransform: refuse
        cache: { store: false, form: translated }

    pinsets:
      payments:
        mode: publicKey
        pins: ["\(SampleCertificate.keyPin)", "certificates/api.cer"]
        allowInvalidCertificates: false
        validatesDomainName: true
      own-ca:
        mode: certificate
        pins: ["\(SampleCertificate.fingerprint)"]
        anchors: [corp-ca.pem]
      "off": { mode: none }

    pins: { observe: all, reportTo: "https://reports.example.com/pins" }

    tls: { minimum: 1.3, roots: [system] }

    cache:
      enabled: true
      memory: 64MiB
      disk: 1GiB
      path: "odd \\"näme\\"\\u200b"
      maximumObject: 256MB

    resolver: { servers: ["192.0.2.53", "[2001:db8::53]:5353"], minimumTTL: 1s, maximumTTL: 1h }
    activity: { activationDelay: 1s, completionDelay: 170ms }
    limits: { connections: 20000, headBytes: 32KiB, fields: 128, upstreamPerHost: 256,
              pending: 1024, bufferBytes: 2MiB, streams: 250, resets: 1000,
              perClient: { connections: 50, exchanges: 40 } }
    timeouts: { head: 10s, idle: 60s, connect: 5s, firstByte: 60s, body: 60s,
                tunnel: 20m, eventStream: 30m, grace: 30s }
    log: { level: info, access: { path: access.log, format: combined } }
    tracing: { traceparent: begin, otlp: "https://otel.example/tenant", sample: 0.25% }
    """

/// A folder with the files that ``fullConfiguration`` names.
func withFullConfiguration<Result>(_ body: (String) throws -> Result) throws -> Result {
    try withTemporaryFolder { folder in
        try write("token", to: "admin.token", in: folder)
        try write("{}", to: "reply.schema.json", in: folder)
        try write(SampleCertificate.pem, to: "corp-ca.pem", in: folder)
        try makeFolder("certificates", in: folder)
        try write(SampleCertificate.pem, to: "certificates/api.cer", in: folder)
        return try body(folder)
    }
}

@Suite("Complete configurations")
struct ShapeTests {
    @Test func `a complete configuration loads`() throws {
        try withFullConfiguration { folder in
            let snapshot = try load(fullConfiguration, folder: folder)
            #expect(snapshot.listeners.count == 2)
            #expect(snapshot.listeners.map(\.http2) == [.off, .auto])
            #expect(snapshot.hosts.entries.map(\.http2) == [.auto, .off])
            #expect(snapshot.limits.streams == 250 && snapshot.limits.resets == 1000)
            #expect(snapshot.hosts.entries.count == 2)
            #expect(snapshot.hosts.entries[0].pinsets == [0, 1])
            #expect(snapshot.pinsets.map(\.pinset.name) == ["payments", "own-ca", "off"])
            #expect(snapshot.cache.path == folder + "/odd \"näme\"\u{200B}")
            #expect(snapshot.cache.maximumObjectBytes == 256_000_000)
            #expect(snapshot.log.access?.path == folder + "/access.log")
            #expect(snapshot.log.access?.format == .combined)
        }
    }

    @Test func `the effective configuration is a valid one that equals the original`() throws {
        try withFullConfiguration { folder in
            let snapshot = try load(fullConfiguration, folder: folder)
            // Loaded from another folder, because its paths must be absolute.
            #expect(try load(snapshot.effectiveYAML(), folder: "/elsewhere") == snapshot)
            #expect(!snapshot.effectiveYAML().contains("token\n"))
        }
        let defaults = try loadDefaults()
        #expect(try load(defaults.effectiveYAML(), folder: "/elsewhere") == defaults)
        let few = try load(
            """
            workers: 3
            listeners: [{ address: "[::]:0" }]
            access: { clients: [0.0.0.0/0], connectPorts: any }
            cache: { enabled: false, disk: 0, memory: 1500 }
            timeouts: { grace: 0s, head: 1500ms }
            """)
        #expect(try load(few.effectiveYAML(), folder: "/elsewhere") == few)
    }

    @Test func `the benchmark's configuration loads`() throws {
        try withTemporaryFolder { folder in
            try write(SampleCertificate.pem, to: "ca.pem", in: folder)
            let snapshot = try load(
                """
                workers: 1
                listeners:
                  - { name: bench, address: "127.0.0.1:18080", kind: forward }
                admin: { address: "127.0.0.1:0" }
                access:
                  clients: ["127.0.0.0/8"]
                  connectPorts: any
                  destinations: { allow: ["127.0.0.0/8", "localhost"] }
                hosts:
                  - { match: ["localhost:18443"], upgrade: https }
                tls: { minimum: "1.2", roots: ["\(folder)/ca.pem"] }
                cache: { memory: 256MiB, disk: 1GiB, path: "\(folder)" }
                limits: { connections: 15000 }
                """, folder: folder)
            let host = Array("localhost".utf8)
            #expect(snapshot.hostEntry(host: host.span, port: 18_443) == 0)
            #expect(snapshot.hostEntry(host: host.span, port: 18_080) == nil)
            #expect(snapshot.access.hostMatch(host: host.span, port: 1).allowed)
            #expect(snapshot.workers.count == 1)
            #expect(snapshot.limits.connections == 15_000)
        }
    }

    @Test func `paths are relative to the file's folder, and a tilde is the home folder`() throws {
        func path(_ text: String, file: String) throws -> String {
            try ConfigurationLoader(environment: testEnvironment)
                .load(text: Array("cache: { path: '\(text)' }".utf8), name: file).snapshot.cache
                .path
        }
        #expect(try path("x", file: "gateway.yaml") == "/srv/x")
        #expect(try path("x", file: "a/gateway.yaml") == "/srv/a/x")
        #expect(try path("./x/", file: "/etc/gateway.yaml") == "/etc/x")
        #expect(try path("../x", file: "/etc/pinfold/gateway.yaml") == "/etc/pinfold/../x")
        #expect(try path("/x", file: "/etc/gateway.yaml") == "/x")
        #expect(try path("~/x", file: "/etc/gateway.yaml") == "/home/someone/x")
        #expect(try path("~", file: "/etc/gateway.yaml") == "/home/someone")
        #expect(try path("~x", file: "/gateway.yaml") == "/~x")
    }

    @Test func `a file is read from the configured path`() throws {
        try withTemporaryFolder { folder in
            try write("workers: 7\ncache: { path: here }", to: "gateway.yaml", in: folder)
            var environment = testEnvironment
            environment.workingFolder = folder
            let snapshot = try ConfigurationLoader(environment: environment)
                .load(file: "gateway.yaml").snapshot
            #expect(snapshot.workers.count == 7)
            #expect(snapshot.cache.path == folder + "/here")
        }
    }
}
