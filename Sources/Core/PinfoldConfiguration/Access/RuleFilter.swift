import HTTPCore
import Trust

/// Says quickly that none of some rules matches a request: by its method, the client's address,
/// and whether anybody has proved who asks. It looks at no other condition, so a rule that it lets
/// pass may still not match.
package struct RuleFilter: Sendable {
    /// The clients that the rules about a method are about.
    private struct Clients: Sendable {
        var areAll = false
        /// Some. Those with IPv6 addresses are not told from each other.
        var areSome = false
        /// Where the networks of IPv4 begin and end.
        var start: Int32 = 0
        var end: Int32 = 0
    }

    private struct Network: Sendable {
        var mask: UInt32
        var address: UInt32
    }

    /// Two for each method: of rules for everybody, and of those rules and the ones about users.
    private var clients: [Clients] = []
    private var networks: [Network] = []

    package init(_ rules: some Collection<AccessRule>) {
        for method in Method.allCases {
            let about = rules.filter { rule in
                rule.methods.isEmpty || rule.methods.contains { Method($0) == method }
            }
            append(about.filter { $0.users.isEmpty && $0.groups.isEmpty })
            append(about)
        }
    }

    private mutating func append(_ rules: [AccessRule]) {
        var found = Clients(start: Int32(networks.count))
        for rule in rules {
            if rule.clients.isEmpty { found.areAll = true }
            for network in rule.clients {
                found.areSome = true
                guard case .v4(let address) = network.address else { continue }
                let mask = UInt32.max << UInt32(32 - network.prefixLength)
                networks.append(Network(mask: mask, address: address))
            }
        }
        found.end = Int32(networks.count)
        clients.append(found)
    }

    /// Whether one of the rules may match.
    /// - Parameter isKnown: whether somebody has proved who asks.
    package func mayMatch(_ method: Method, from client: IPAddress, isKnown: Bool) -> Bool {
        let clients = clients[Int(method.rawValue) * 2 + (isKnown ? 1 : 0)]
        if clients.areAll { return true }
        guard case .v4(let address) = client else { return clients.areSome }
        return networks.withUnsafeBufferPointer { networks in
            for index in Int(clients.start)..<Int(clients.end)
            where address & networks[index].mask == networks[index].address {
                return true
            }
            return false
        }
    }
}

extension Method {
    /// The method of a name, which is case-sensitive (RFC 9110 §9.1).
    fileprivate init(_ name: String) {
        self = Self.allCases.first { "\($0.name)" == name } ?? .other
    }
}
