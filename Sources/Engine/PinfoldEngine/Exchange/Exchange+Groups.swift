import CachePolicy
import CacheStore
import HTTPCore

// Which of the misses for a key wait for each other: all of them, while the response may be one for
// all; otherwise those of a variant, with the same cookies, or for the same part.
extension Exchange {
    /// The hash of those of a group that have something more in common.
    static func group(in hash: UInt64, _ common: some Hashable) -> UInt64 {
        var hasher = Hasher()
        hasher.combine(hash)
        hasher.combine(common)
        return UInt64(truncatingIfNeeded: hasher.finalize())
    }

    /// Whether the last response was one for all: it was stored. Where that is not known, a request
    /// with a cookie does not wait for the response to one with another, which may be personal.
    var isKnownToBeShared: Bool { caching.stored != nil }

    func sharesCookies(with leader: Exchange?) -> Bool {
        guard let leader else { return !request.fields.contains(.cookie) }
        return leader.storing.ticket != nil || cookies == leader.cookies
    }

    var cookies: [UInt8] {
        guard request.fields.contains(.cookie) else { return [] }
        return withRequestHead { bytes in
            request.fields.lazy.filter { $0.id == .cookie }.flatMap { field in
                field.value.indices.map { bytes[$0] } + [UInt8(ascii: ";")]
            }
        }
    }

    /// Those of a group that ask for the same part; `nil` if what the request asks for depends on
    /// what the client has.
    func groupOfRange(in hash: UInt64) -> UInt64? {
        guard !request.fields.contains(.ifRange), let range = request.fields.only(.range) else {
            return nil
        }
        return Self.group(
            in: hash, withRequestHead { bytes in range.value.indices.map { bytes[$0] } })
    }

    /// Waits for a response of its own variant if this one is of another: of several clients that
    /// want it, only one asks for it.
    func regroup(for response: CachedResponse, _ origin: Origin) {
        guard !collapsing.isOfVariant, response.policy == origin.fingerprint,
            !response.varyKey.isEmpty, let key = caching.key,
            let own = withRequestHead({
                VaryKey(names: response.varyKey.names, for: request, in: $0)
            }), own != response.varyKey
        else { return }
        collapsing.regroup(Self.group(in: key.hash, own), isOfCookies: false)
    }
}
