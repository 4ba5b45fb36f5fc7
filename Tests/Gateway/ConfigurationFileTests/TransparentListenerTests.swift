import EventLoop
import HTTPCore
import PinfoldConfiguration
import TestSupport
import Testing

@testable import Gateway

@Suite("A transparent listener in the file")
struct TransparentListenerTests {
    private static func file(_ keys: String) -> String {
        let more = keys.isEmpty ? "" : ", \(keys)"
        return "listeners: [{ address: '127.0.0.1:1', kind: transparent\(more) }]"
    }

    /// How errors name the listener.
    private static let place = "gateway.yaml:1: listeners[0]"

    private static func options(_ keys: String) throws -> TransparentConfiguration? {
        guard case .transparent(let options) = try load(file(keys)).listeners.first?.kind else {
            return nil
        }
        return options
    }

    @Test func `takes what REDIRECT leads to it, unless it says otherwise`() throws {
        #expect(try Self.options("") == TransparentConfiguration())
        #expect(try Self.options("transparent: redirect")?.source == .redirect)
        #expect(try Self.options("transparent: tproxy")?.source == .tproxy)
        #expect(try Self.options("serverFirst: [25, 143]")?.serverFirst == [25, 143])
        #expect(try Self.options("transparent: tproxy, serverFirst: [25]")?.source == .tproxy)
        #expect(try load(Self.file("")).listeners.first?.name == "transparent")
    }

    @Test func `is printed as it is read`() throws {
        let text = Self.file("transparent: tproxy, serverFirst: [25, 143], http2: off")
        let printed = try load(text).effectiveYAML()
        #expect(printed.contains("transparent: tproxy"))
        #expect(printed.contains("serverFirst: [25, 143]"))
        #expect(try load(printed).listeners == load(text).listeners)
        #expect(!(try load("{}").effectiveYAML().contains("serverFirst")))
    }

    @Test(arguments: [
        ("tls: { certificate: a, key: b }", "tls"),
        ("proxyProtocol: { from: [] }", "proxyProtocol"),
        ("upstream: 'http://a'", "upstream"), ("forwarded: set", "forwarded"),
        ("host: keep", "host"), ("trustedProxies: []", "trustedProxies"),
    ])
    func `has no keys of other kinds`(keys: String, name: String) {
        #expect(
            errors(of: Self.file(keys)).contains(
                "\(Self.place).\(name): does not apply to a transparent listener; expected no "
                    + name))
    }

    @Test func `asks nobody who is asking`() {
        #expect(
            errors(of: Self.file("authentication: [basic]")) == [
                "\(Self.place).authentication: does not apply to a transparent listener, whose "
                    + "clients know of no proxy; expected no authentication"
            ])
    }

    @Test(arguments: [
        ("transparent: nat", "transparent: \"nat\" is not valid; expected one of redirect, tproxy"),
        ("serverFirst: [0]", "serverFirst[0]: "), ("serverFirst: [a]", "serverFirst[0]: "),
        ("serverFirst: 25", "serverFirst: "),
    ])
    func `has values that are checked`(keys: String, start: String) {
        let lines = errors(of: Self.file(keys))
        #expect(lines.count == 1)
        #expect(lines.first?.hasPrefix("\(Self.place).\(start)") == true, "\(lines)")
    }

    @Test(
        arguments: [
            ("[443]", nil), ("[25]", "25: access.connectPorts does not have it"),
            ("[25, 443, 143]", "25, 143: access.connectPorts does not have them"),
        ] as [(String, String?)])
    func `warns of ports that are refused`(ports: String, text: String?) throws {
        let found = try warnings(of: Self.file("serverFirst: \(ports)"))
        let expected = text.map { "\(Self.place).serverFirst: refuses connections to \($0)" }
        #expect(found == (expected.map { [$0] } ?? []))
    }

    @Test func `listens on an address`() {
        let text = "listeners: [{ address: 'unix:/a', kind: transparent }]"
        #expect(
            errors(of: text) == [
                "\(Self.place).address: is a Unix socket, to which no firewall leads "
                    + "connections; expected an address and a port"
            ])
    }

    @Test(arguments: [[false], [true, false], [false, true]])
    func `listens on passed sockets that are of addresses`(areAddresses: [Bool]) throws {
        var environment = testEnvironment
        environment.sockets = try areAddresses.enumerated().map { index, isAddress in
            let endpoint = try #require(Endpoint("127.0.0.1:80"))
            return PassedSocket(
                name: "led", descriptor: Int32(3 + index),
                socket: isAddress
                    ? .listening(endpoint, isDualStack: false) : .listeningOnUnix(path: "/a"))
        }
        let text = "listeners: [{ address: 'fd:led', kind: transparent }]\n"
        #expect(
            errors(of: text + "access: { clients: [unix] }", environment: environment) == [
                "\(Self.place).address: is a Unix socket, to which no firewall leads "
                    + "connections; expected an address and a port"
            ])
    }

    @Test(arguments: ["forward", "reverse, upstream: 'http://a'", "socks5"])
    func `is the only kind with its keys`(kind: String) {
        for key in ["transparent: redirect", "serverFirst: [25]"] {
            let text = "listeners: [{ address: '127.0.0.1:1', kind: \(kind), \(key) }]"
            let lines = errors(of: text)
            #expect(lines.count == 1)
            #expect(
                lines.first?.contains("does not apply to a \(kind.prefix { $0 != "," }) listener")
                    == true, "\(lines)")
        }
    }

    @Test func `is kept by --listen`() throws {
        var options = CommandLineOverlay()
        options.listen = ["127.0.0.1:2"]
        let kinds = try load(Self.file(""), overlay: options).listeners.map(\.name)
        #expect(kinds == ["forward", "transparent"])
    }
}
