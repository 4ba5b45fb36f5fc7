import AccessPolicy
import HTTPCore
import Trust

/// A rule of `access.rules`: what happens to the requests that fulfil all of its conditions. A
/// condition that is empty is fulfilled by every request.
package struct AccessRule: Sendable, Equatable {
    /// What happens.
    package enum Action: Sendable, Equatable {
        /// The request is served, as far as nothing else refuses it.
        case allow
        /// The request is refused.
        case deny(AccessDenial)
        /// The match is logged and counted, and the next rule is tried.
        case report

        /// The word in configurations.
        package var name: String {
            switch self {
            case .allow: "allow"
            case .deny: "deny"
            case .report: "report"
            }
        }
    }

    package var name = ""
    /// The names of the listeners that the request comes through.
    package var listeners: [String] = []
    /// The networks of the client's address.
    package var clients: [IPNetwork] = []
    /// The names of those who ask, where the listener wants to know. A request of nobody known
    /// fulfils neither this nor ``groups``.
    package var users: [String] = []
    /// The groups of those who ask.
    package var groups: [String] = []
    /// The requested host.
    package var hosts: [HostPattern] = []
    /// The names of lists that the requested host is in.
    package var lists: [String] = []
    /// The requested port.
    package var ports: [UInt16] = []
    /// The method, in upper case; CONNECT for a tunnel.
    package var methods: [String] = []
    /// The path, if the gateway can see it.
    package var paths: [PathPattern] = []
    /// The local time.
    package var times: [WeeklyHours] = []
    package var action = Action.allow
    /// How much of the requests that it decides may pass; `nil` for any number.
    package var rate: RateLimits?
    /// How tunnels that it allows are handled.
    package var tunnels = TunnelSettings.none
    /// The ways of the requests that it allows, in the order in which they are tried; empty for
    /// those of their host.
    package var parents: [WayName] = []

    package init() {}

    /// Whether every request that fulfils the conditions of another rule fulfils these as well, as
    /// far as that is obvious.
    package func covers(_ other: AccessRule) -> Bool {
        func all<Value: Equatable>(_ mine: [Value], _ others: [Value]) -> Bool {
            mine.isEmpty || !others.isEmpty && others.allSatisfy(mine.contains)
        }
        return all(listeners, other.listeners) && all(users, other.users)
            && all(groups, other.groups) && all(lists, other.lists) && all(ports, other.ports)
            && all(methods, other.methods) && all(paths, other.paths) && all(times, other.times)
            && coversClients(of: other) && coversHosts(of: other)
    }

    private func coversClients(of other: AccessRule) -> Bool {
        if clients.isEmpty { return true }
        return !other.clients.isEmpty
            && other.clients.allSatisfy { inner in
                clients.contains {
                    $0.contains(client: inner.address) && $0.prefixLength <= inner.prefixLength
                }
            }
    }

    private func coversHosts(of other: AccessRule) -> Bool {
        if hosts.isEmpty || hosts.contains(.everything) { return true }
        var coverage = PatternCoverage<Void>()
        for pattern in hosts { coverage.insert(pattern, owner: ()) }
        return !other.hosts.isEmpty
            && other.hosts.allSatisfy { coverage.owner(covering: $0) != nil }
    }
}

/// How a rule refuses requests.
package struct AccessDenial: Sendable, Equatable {
    /// The status of the reply.
    package var status: UInt16 = 403
    /// The content of the reply in place of the gateway's own; `nil` for that.
    package var page: DenialPage?

    package init() {}
}

/// Why a page cannot be used.
package struct DenialPageError: Error, Equatable {
    /// The line in the file.
    package let line: Int
    package let text: String

    package init(line: Int, text: String) {
        self.line = line
        self.text = text
    }
}

/// A page in HTML with which requests are refused. `{{host}}`, `{{url}}`, `{{rule}}`, `{{client}}`
/// and `{{id}}` stand for the values of the request, which are escaped.
package struct DenialPage: Sendable, Equatable {
    /// What a name in double braces stands for.
    package enum Value: String, Sendable, Equatable, CaseIterable {
        /// The requested host and, if it is not the scheme's, its port.
        case host
        /// The request's target, without userinfo.
        case url
        /// The name of the rule.
        case rule
        /// The client's address.
        case client
        /// The number under which the request is logged.
        case id
    }

    /// The largest page, in bytes.
    package static let maximumBytes = 64 << 10

    private enum Part: Sendable, Equatable {
        case text([UInt8])
        case value(Value)
    }

    /// The file that it was read from.
    package let path: String
    private let parts: [Part]

    /// Reads a page.
    package init(path: String, content: [UInt8]) throws(DenialPageError) {
        self.path = path
        var parts: [Part] = []
        var rest = content[...]
        while let start = rest.firstRange(of: Array("{{".utf8)) {
            let line = content[..<start.lowerBound].count { $0 == UInt8(ascii: "\n") } + 1
            parts.append(.text(Array(rest[..<start.lowerBound])))
            guard let end = rest[start.upperBound...].firstRange(of: Array("}}".utf8)) else {
                throw DenialPageError(line: line, text: "'{{' is not closed")
            }
            let name = String(decoding: rest[start.upperBound..<end.lowerBound], as: UTF8.self)
            guard let value = Value(rawValue: String(name.filter { $0 != " " })) else {
                let known = Value.allCases.map { "{{\($0.rawValue)}}" }.joined(separator: ", ")
                throw DenialPageError(
                    line: line, text: "there is no value {{\(name.prefix(32))}}; expected \(known)")
            }
            parts.append(.value(value))
            rest = rest[end.upperBound...]
        }
        parts.append(.text(Array(rest)))
        self.parts = parts
    }

    /// The page with its values.
    package func filled(with values: (Value) -> String) -> [UInt8] {
        var result: [UInt8] = []
        for part in parts {
            switch part {
            case .text(let bytes): result += bytes
            case .value(let value): Self.append(values(value), to: &result)
            }
        }
        return result
    }

    /// Appends text such that it is text wherever in HTML it is.
    private static func append(_ text: String, to result: inout [UInt8]) {
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "&"), UInt8(ascii: "<"), UInt8(ascii: ">"), UInt8(ascii: "\""),
                UInt8(ascii: "'"), UInt8(ascii: "`"), UInt8(ascii: "="):
                result += "&#\(byte);".utf8
            case 0..<0x20, 0x7F: result.append(UInt8(ascii: " "))
            default: result.append(byte)
            }
        }
    }
}
