import CacheStore
import Clocks
import Synchronization

/// What the fingerprints of responses leave out of the trust under which those were obtained: which
/// roots the system has. A gateway keeps what it has stored when its machine's certificates are
/// updated. In the engine, where those of several machines meet, they are a part of it: every
/// fingerprint is marked there, and nobody recognizes one that is marked by other roots.
package struct SystemTrust: Sendable, Hashable {
    /// Of responses that servers have sent by TLS.
    fileprivate let mark: UInt64
    /// Of all others.
    fileprivate let clearTextMark: UInt64

    /// Nothing is verified by the system's roots.
    package static let none = SystemTrust(roots: 0, coversClearText: false)

    /// - Parameters:
    ///   - roots: a digest of them, the same on all machines that have the same.
    ///   - coversClearText: whether what is obtained in clear text depends on them as well, as it
    ///     does by way of a proxy that is spoken to by TLS.
    package init(roots: UInt64, coversClearText: Bool) {
        mark = roots
        clearTextMark = coversClearText ? roots : 0
    }
}

/// The one that is in force.
final class SystemTrustInForce: Sendable {
    private let mark = Atomic<UInt64>(0)
    private let clearTextMark = Atomic<UInt64>(0)
    /// Until when, in seconds since 1970, requests may have begun under another one; -1 for none.
    private let former = Atomic<Int64>(-1)
    private let isKnown = Atomic<Bool>(false)

    /// Workers take to it one after the other, within a moment.
    private static let adoptionSeconds: Int64 = 2

    func set(_ trust: SystemTrust) {
        guard
            trust.mark != mark.load(ordering: .relaxed)
                || trust.clearTextMark != clearTextMark.load(ordering: .relaxed)
        else { return isKnown.store(true, ordering: .releasing) }
        // Nothing has been asked for yet when the first one is set.
        if isKnown.exchange(true, ordering: .acquiringAndReleasing) {
            former.store(Clock.wallSeconds() + Self.adoptionSeconds, ordering: .releasing)
        }
        mark.store(trust.mark, ordering: .releasing)
        clearTextMark.store(trust.clearTextMark, ordering: .releasing)
    }

    /// By what the fingerprints of a key's responses differ in the engine.
    func mark(of key: UnsafeRawBufferPointer) -> UInt64 {
        key.isOfTLS
            ? mark.load(ordering: .acquiring) : clearTextMark.load(ordering: .acquiring)
    }

    /// All of these that there may be.
    var marks: Set<UInt64> {
        [mark.load(ordering: .acquiring), clearTextMark.load(ordering: .acquiring)]
    }

    /// Whether a response was asked for under the present one, as far as can be told.
    func covers(_ response: CachedResponse) -> Bool {
        response.metadata.times.requestTime > former.load(ordering: .acquiring)
    }
}

extension UnsafeRawBufferPointer {
    /// Whether it is the key of what servers send by TLS: its URI is of https. Before that there
    /// may be a word and a colon (`CacheRoute.prefix`).
    fileprivate var isOfTLS: Bool {
        let scheme = "https:".utf8
        if starts(with: scheme) { return true }
        guard let colon = firstIndex(of: UInt8(ascii: ":")) else { return true }
        return self[(colon + 1)...].starts(with: scheme)
    }
}

extension SharedLevel {
    /// By what the fingerprints of what a lookup finds differ in the engine.
    func mark(of load: LevelLoad) -> UInt64 {
        load.key.withUnsafeBytes { systemTrust.mark(of: $0) }
    }
}
