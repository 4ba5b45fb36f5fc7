import PinfoldConfiguration
import Trust

/// A value with lists whose order has no effect. What is read from files is not printed: only
/// values in one order tell whether it is other, too.
protocol Reorderable: Equatable {
    /// The same with those lists in an order that does not depend on how they are written.
    var inOneOrder: Self { get }
}

extension Reorderable {
    /// Whether another value of this type differs in nothing but order.
    func isSame(as other: Any) -> Bool {
        guard let other = other as? Self else { return false }
        return self == other || inOneOrder == other.inOneOrder
    }
}

/// Whether two values differ in nothing but an order that has no effect.
func isSameInEffect<Value: Equatable>(_ one: Value, _ other: Value) -> Bool {
    if one == other { return true }
    guard let one = one as? any Reorderable else { return false }
    return one.isSame(as: other)
}

extension PinsetEntry: Reorderable {
    var inOneOrder: PinsetEntry {
        var entry = self
        entry.pinTexts.sort()
        entry.anchorPaths.sort()
        entry.pinset.pins.sort { "\($0)" < "\($1)" }
        entry.pinset.anchors.sort { $0.lexicographicallyPrecedes($1) }
        return entry
    }
}

extension AccessRule: Reorderable {
    var inOneOrder: AccessRule {
        var rule = self
        rule.listeners.sort()
        rule.clients.sort { "\($0)" < "\($1)" }
        rule.users.sort()
        rule.groups.sort()
        rule.hosts.sort { "\($0)" < "\($1)" }
        rule.lists.sort()
        rule.ports.sort()
        rule.methods.sort()
        rule.times.sort { "\($0)" < "\($1)" }
        return rule
    }
}

extension ListenerConfiguration: Reorderable {
    var inOneOrder: ListenerConfiguration {
        var listener = self
        listener.authentication.sort { "\($0)" < "\($1)" }
        listener.forwarding.trustedProxies.sort { "\($0)" < "\($1)" }
        listener.proxyProtocol?.from.sort { "\($0)" < "\($1)" }
        listener.tls = tls?.inOneOrder
        return listener
    }
}

extension ListenerTLS: Reorderable {
    var inOneOrder: ListenerTLS {
        var tls = self
        tls.clientRoots.sort { $0.path < $1.path }
        tls.clientSubjects.sort { "\($0)" < "\($1)" }
        return tls
    }
}

extension AdminConfiguration: Reorderable {
    var inOneOrder: AdminConfiguration {
        var admin = self
        admin.hosts.sort { "\($0)" < "\($1)" }
        admin.tls = tls?.inOneOrder
        return admin
    }
}

extension UpstreamTLS: Reorderable {
    var inOneOrder: UpstreamTLS {
        var tls = self
        tls.roots.sort { $0.path < $1.path }
        tls.crls.sort { $0.path < $1.path }
        return tls
    }
}

extension HostEntry: Reorderable {
    var inOneOrder: HostEntry {
        var entry = self
        entry.tls = tls.inOneOrder
        entry.cache.bypass.fields?.sort()
        entry.cache.bypass.cookies?.sort { "\($0)" < "\($1)" }
        entry.cache.bypass.parameters?.sort { "\($0)" < "\($1)" }
        return entry
    }
}

extension TrustRoots {
    /// The absolute path of its file; empty for the system's.
    fileprivate var path: String {
        switch self {
        case .system: ""
        case .file(let path, _): path
        }
    }
}
