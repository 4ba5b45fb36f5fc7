import HTTPCore
import Trust

extension AccessRule {
    /// Whether no request fulfils the conditions of both rules, as far as that is obvious: then it
    /// does not matter which one is tried first.
    package func excludes(_ other: AccessRule) -> Bool {
        func differ<Value: Equatable>(_ mine: [Value], _ others: [Value]) -> Bool {
            !mine.isEmpty && !others.isEmpty && !mine.contains(where: others.contains)
        }
        return differ(listeners, other.listeners) || differ(users, other.users)
            || differ(ports, other.ports) || differ(methods, other.methods)
            || clientsDiffer(from: other) || hostsDiffer(from: other)
    }

    private func clientsDiffer(from other: AccessRule) -> Bool {
        guard !clients.isEmpty, !other.clients.isEmpty else { return false }
        // An IPv6 address may embed an IPv4 address, and is then denied like that.
        let families = Set((clients + other.clients).map(\.address.family))
        guard families.count == 1 else { return false }
        return !clients.contains { mine in
            other.clients.contains { $0.contains(mine.address) || mine.contains($0.address) }
        }
    }

    private func hostsDiffer(from other: AccessRule) -> Bool {
        guard !hosts.isEmpty, !other.hosts.isEmpty else { return false }
        func areNames(_ patterns: [HostPattern]) -> Bool {
            patterns.allSatisfy { pattern in
                pattern.exactName.map { IPAddress(literal: $0.utf8.span) == nil } ?? true
            }
        }
        // The same of addresses.
        guard areNames(hosts), areNames(other.hosts) else { return false }
        return !hosts.contains { mine in other.hosts.contains { mine.overlaps($0) } }
    }
}
