import HTTPCore
import RedisProtocol

/// An entry of a policy that would apply to connections by which the gateway serves others.
package struct PolicyReach: Sendable, Equatable {
    /// The entry's index in the whole table.
    package var entry: Int
    package var widening: PolicyWidening
}

extension PolicyNarrowing {
    /// Where entries of a policy apply to parents, to servers of a listener that has several, or to
    /// the engine of the shared cache. Whoever could have one of these fail would choose the way
    /// that requests take: to the next parent, directly, or to another server; or would keep purges
    /// from this gateway.
    /// - Parameter merged: the local configuration with the policy.
    package func reaches(of merged: ConfigurationSnapshot) -> [PolicyReach] {
        var found: [PolicyReach] = []
        func check(_ host: String, _ port: UInt16, _ what: @autoclosure () -> String) {
            guard let entry = merged.hostEntry(host: host.utf8.span, port: port),
                entry >= merged.hosts.localCount
            else { return }
            let place = HostText.text(host, port: port)
            found.append(
                PolicyReach(
                    entry: entry,
                    widening: PolicyWidening(
                        .hostsMatch, "applies to \(place), which is \(what())",
                        expected: "other patterns, or a local entry for it")))
        }
        for parent in local.parents {
            check(parent.host, parent.port, "the local parent \(parent.name)")
        }
        for listener in local.listeners {
            guard case .balanced(let set) = listener.kind else { continue }
            for server in set.servers {
                check(
                    server.origin.host, server.origin.port,
                    "a server of the local listener \(listener.name)")
            }
        }
        if case .url(let url) = local.cache.shared?.place,
            case .tcp(let host, let port, isSecure: true) = url.server
        {
            check(host, port, "the engine of the local cache.shared")
        }
        return found
    }

    /// How many pins the entries of a policy compare altogether: more are refused, because each
    /// entry verifies its servers with copies of its own.
    package static let maximumPins = 100_000

    /// The first entry of a policy with which there are more than ``maximumPins``; `nil` if none.
    package static func entryWithTooManyPins(in merged: ConfigurationSnapshot) -> Int? {
        var count = 0
        for index in merged.hosts.localCount..<merged.hosts.entries.count {
            for pinset in merged.hosts.entries[index].pinsets {
                count += merged.pinsets[pinset].pinset.pins.count
            }
            if count > maximumPins { return index }
        }
        return nil
    }
}
