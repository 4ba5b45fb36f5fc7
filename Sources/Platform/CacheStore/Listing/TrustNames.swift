import Locking

/// What the fingerprints of policies mean: how the servers that responses came from were verified.
final class TrustNames: Sendable {
    private let names = Locked<[UInt64: String]>([:])

    /// Different fingerprints at most; those of later ones are not kept.
    static let limit = 4096
    /// Bytes of a text at most; the rest is cut off.
    static let maximumBytes = 1024

    subscript(policy: UInt64) -> String? { names.withLock { $0[policy] } }

    var all: [UInt64: String] { names.withLock { $0 } }

    /// Keeps a text. Returns whether it is a new one.
    func set(_ policy: UInt64, _ text: String) -> Bool {
        names.withLock { names in
            guard names[policy] != text, names[policy] != nil || names.count < Self.limit else {
                return false
            }
            names[policy] = text
            return true
        }
    }

    /// Adds those that were written down, unless something else is known by now.
    func add(_ found: [(UInt64, String)]) {
        names.withLock { names in
            for (policy, text) in found where names[policy] == nil && names.count < Self.limit {
                names[policy] = text
            }
        }
    }
}

extension CacheStore {
    /// Says what the fingerprint of a policy means, for lists of what is stored: how a server was
    /// verified. It is kept with what is stored. Costs next to nothing if it is known already.
    /// - Parameter text: for people; of more than 1024 bytes the rest is cut off.
    public func describe(policy: UInt64, as text: String) {
        let text = String(decoding: text.utf8.prefix(TrustNames.maximumBytes), as: UTF8.self)
        if trust.set(policy, text) { disk.write(trust: policy, text) }
    }

    /// What the fingerprint of a policy means; `nil` if that is not known.
    public func description(ofPolicy policy: UInt64) -> String? { trust[policy] }
}
