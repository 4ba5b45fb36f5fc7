import EventLoop
import HTTPCore
import PinfoldConfiguration
import Testing

@testable import Gateway

@Suite("What the configuration takes from the machine")
struct MachineTests {
    private func environment(memory: Int?) -> ConfigurationEnvironment {
        var environment = testEnvironment
        environment.memoryLimit = memory
        return environment
    }

    @Test(
        arguments: [
            (nil, 64), (8 << 30, 64), (512 << 20, 64), (256 << 20, 32), (64 << 20, 8),
            (4 << 20, 1), (1, 1),
        ] as [(Int?, Int)])
    func `automatic sizes are an eighth of the memory limit, at most 64 MiB`(
        limit: Int?, mebibytes: Int
    ) throws {
        let expected = mebibytes << 20
        for text in ["{}", "cache: { memory: auto }\nlimits: { bufferBytes: auto }"] {
            let snapshot = try load(text, environment: environment(memory: limit))
            #expect(snapshot.cache.memoryBytes == expected)
            #expect(snapshot.limits.bufferBytes == expected)
        }
    }

    @Test func `sizes that are written stay`() throws {
        let snapshot = try load(
            "cache: { memory: 3MiB }\nlimits: { bufferBytes: 2MiB }",
            environment: environment(memory: 256 << 20))
        #expect(snapshot.cache.memoryBytes == 3 << 20)
        #expect(snapshot.limits.bufferBytes == 2 << 20)
    }

    private func warnings(_ text: String, memory: Int?) throws -> [String] {
        try ConfigurationLoader(environment: environment(memory: memory))
            .load(text: Array(text.utf8), name: "gateway.yaml").warnings.map(\.description)
    }

    @Test func `sizes that exceed the memory limit are warned of`() throws {
        let text = "cache: { memory: 200MiB }\nlimits: { bufferBytes: 100MiB }"
        #expect(
            try warnings(text, memory: 256 << 20) == [
                "gateway.yaml:1: cache.memory: cache.memory and limits.bufferBytes, 200MiB and "
                    + "100MiB, exceed the limit on the memory of this process, 256MiB (cgroup)"
            ])
        #expect(try warnings(text, memory: 300 << 20).isEmpty)
        #expect(try warnings(text, memory: nil).isEmpty)
        let off = "cache: { enabled: false, memory: 200MiB }\nlimits: { bufferBytes: 100MiB }"
        #expect(try warnings(off, memory: 256 << 20).isEmpty)
    }
}

@Suite("Addresses of passed sockets")
struct PassedAddressTests {
    private func environment(_ sockets: [(String, InheritedSocket)]?) -> ConfigurationEnvironment {
        var environment = testEnvironment
        environment.sockets = sockets?.enumerated().map { index, one in
            PassedSocket(name: one.0, descriptor: Int32(3 + index), socket: one.1)
        }
        return environment
    }

    private func listening(_ text: String) throws -> InheritedSocket {
        .listening(try #require(Endpoint(text)), isDualStack: false)
    }

    private let text = "listeners: [{ address: 'fd:web' }]"

    @Test func `a listener has the addresses of its sockets`() throws {
        let sockets = [
            ("web", try listening("127.0.0.1:80")), ("adm", try listening("127.0.0.1:81")),
            ("web", try listening("[::1]:80")), ("web", try listening("127.0.0.1:80")),
        ]
        let snapshot = try load(
            text + "\nadmin: { address: fd:adm }", environment: environment(sockets))
        let listener = try #require(snapshot.listeners.first)
        #expect(listener.endpoints.map(\.description) == ["127.0.0.1:80", "[::1]:80"])
        #expect(listener.address.description == "127.0.0.1:80")
        #expect(listener.passed?.name == "web")
        #expect(snapshot.admin.endpoints.map(\.description) == ["127.0.0.1:81"])
        #expect(snapshot.passedNames == ["web", "adm"])
        let printed = snapshot.effectiveYAML()
        #expect(printed.contains("address: \"fd:web\"") && printed.contains("address: \"fd:adm\""))
        #expect(try load(printed, environment: environment(sockets)) == snapshot)
    }

    @Test func `a listener has the paths of its Unix sockets, and needs unix in access`() throws {
        let sockets = [
            ("web", InheritedSocket.listeningOnUnix(path: "/run/a")),
            ("web", try listening("127.0.0.1:80")),
            ("adm", .listeningOnUnix(path: "/run/b")),
        ]
        let written = text + "\nadmin: { address: fd:adm }\naccess: { clients: [unix] }"
        let snapshot = try load(written, environment: environment(sockets))
        #expect(snapshot.listeners[0].unixPaths == ["/run/a"])
        #expect(snapshot.listeners[0].endpoints.map(\.description) == ["127.0.0.1:80"])
        #expect(snapshot.admin.unixPaths == ["/run/b"] && snapshot.admin.endpoints.isEmpty)
        #expect(snapshot.admin.metrics == .open, "all its clients are on this machine")
        #expect(try load(snapshot.effectiveYAML(), environment: environment(sockets)) == snapshot)
        let warned = try ConfigurationLoader(environment: environment(sockets))
            .load(text: Array(text.utf8), name: "/srv/gateway.yaml").warnings
        #expect(warned.contains { $0.text.contains("does not name unix") })
    }

    @Test(arguments: [
        ("mode: \"0660\"", "mode", "SocketMode="), ("owner: root", "owner", "SocketUser="),
    ])
    func `permissions of passed sockets are the service manager's`(
        key: String, name: String, hint: String
    ) throws {
        let sockets = environment([("web", .listeningOnUnix(path: "/run/a"))])
        for text in [
            "listeners: [{ address: 'fd:web', \(key) }]\naccess: { clients: [unix] }",
            "admin: { address: 'fd:web', \(key) }",
        ] where !(text.hasPrefix("admin") && name == "owner") {
            let found = errors(of: text, environment: sockets)
            #expect(found.count == 1)
            #expect(
                found.allSatisfy {
                    $0.contains(".\(name): does not apply to sockets from the service manager")
                        && $0.contains(hint)
                }, "\(found)")
        }
    }

    @Test func `where nothing can be known, nothing is verified`() throws {
        let snapshot = try load(text)
        #expect(snapshot.listeners[0].endpoints.isEmpty)
        #expect(snapshot.listeners[0].isLoopback)
    }

    @Test(
        arguments: [
            ([], "no socket named \"web\" was passed", "no sockets were passed (LISTEN_FDS)"),
            (
                [
                    ("b", .listeningOnUnix(path: "/b")), ("a", .listeningOnUnix(path: "/a")),
                    ("b", .listeningOnUnix(path: "/b")),
                ],
                "no socket named \"web\" was passed", "one of fd:a, fd:b"
            ),
            (
                [("web", .unusable("is no stream socket"))],
                "descriptor 3, named \"web\", is no stream socket", "a listening TCP or Unix socket"
            ),
        ] as [([(String, InheritedSocket)], String, String)])
    func `a socket that cannot be used is an error`(
        sockets: [(String, InheritedSocket)], problem: String, expected: String
    ) throws {
        let found = errors(of: text, environment: environment(sockets))
        #expect(found.count == 1)
        let line = try #require(found.first)
        #expect(line.hasPrefix("gateway.yaml:1: listeners[0].address: "))
        #expect(line.contains(problem) && line.contains(expected), "\(line)")
    }

    @Test func `the rules for addresses beyond loopback hold for sockets`() throws {
        let sockets = environment([
            ("web", try listening("127.0.0.1:80")), ("web", try listening("0.0.0.0:80")),
        ])
        #expect(
            errors(of: text, environment: sockets).first?.contains(
                "0.0.0.0:80 is not a loopback address") == true)
        #expect(
            errors(
                of: text + "\naccess: { clients: ['10.0.0.0/8'] }", environment: sockets
            ).isEmpty)
        let admin = errors(
            of: "admin: { address: fd:web }", environment: sockets)
        #expect(admin.first?.contains("fd:web is not a loopback address") == true)
    }

    @Test func `an address is one listener's`() throws {
        let sockets = environment([("web", try listening("127.0.0.1:80"))])
        for other in ["fd:web", "127.0.0.1:80"] {
            let found = errors(
                of: "listeners: [{ address: 'fd:web' }, { address: '\(other)' }]",
                environment: sockets)
            #expect(
                found == [
                    "gateway.yaml:1: listeners[1].address: \(other) is used by another listener or "
                        + "by admin; expected a different address"
                ])
        }
        let admin = errors(
            of: text + "\nadmin: { address: fd:web }", environment: sockets)
        #expect(admin.first?.contains("listeners[0].address: fd:web is used by another") == true)
    }
}
