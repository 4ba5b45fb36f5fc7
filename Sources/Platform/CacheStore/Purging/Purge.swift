import CachePolicy
import HTTPCore

/// What is purged.
///
/// Patterns are matched with the URI of a stored response, `scheme://host[:port]/path?query` in the
/// form of cache keys (scheme and host in lower case, no default port, the path byte for byte),
/// whatever route it was stored for; QUERYs and the parts of a representation have the URI that
/// they belong to.
public struct Purge: Sendable, Equatable {
    public enum Scope: Sendable, Equatable {
        /// The URIs of these keys, with all variants, QUERYs and parts. The caller names the key of
        /// each route that may have stored it: those are removed at once. A soft purge is about all
        /// routes, and so is a hard one after a restart, for what it had not removed by then.
        case keys([CacheKey])
        /// All URIs that begin with these bytes.
        case prefix([UInt8])
        case host(PurgeHost)
        /// All responses with this tag: a member of Surrogate-Key (separated by spaces), Cache-Tag
        /// (by commas) or Cache-Groups (a list of strings, RFC 9875). Case matters.
        /// - Parameter origin: only those of `scheme://host[:port]`, because a group belongs to an
        ///   origin (RFC 9875 §2); `nil` for those of all.
        case tag([UInt8], origin: [UInt8]? = nil)
        case everything
        /// This URI, with all variants, QUERYs and parts, by whatever route it was stored: what
        /// another gateway has purged, which may have other routes.
        case uri([UInt8])
    }

    public var scope: Scope
    /// `true`: what is purged becomes stale at once, and is used again when its origin has
    /// confirmed it, or where a stale response may be used. `false`: it is gone.
    public var isSoft: Bool

    public init(_ scope: Scope, isSoft: Bool = false) {
        self.scope = scope
        self.isSoft = isSoft
    }

    /// Bytes of a prefix, a tag or an origin at most.
    public static let maximumPatternBytes = CacheKey.maximumBytes
    /// The maximum number of keys of one purge.
    public static let maximumKeys = 10_000
}

/// Why a text names no hosts to purge.
public enum PurgeHostError: Error, Equatable, Sendable {
    case empty
    /// A character that no host has, or a wildcard that is not at the beginning.
    case malformed
    /// Not 1 to 65535.
    case port
}

/// The hosts that a purge is for: `example.com` exactly, `*.example.com` with one more label, or
/// `**.example.com` at any depth, including the domain itself; each with `:port` for that port
/// only.
/// An IPv6 address is in brackets.
public struct PurgeHost: Sendable, Hashable, CustomStringConvertible {
    package enum Reach: UInt8, Sendable, Hashable {
        case exact
        case oneLabel
        case anyDepth
    }

    package let reach: Reach
    /// In lower case, without the wildcard and the port.
    package let name: [UInt8]
    /// `nil` for every port.
    public let port: UInt16?

    /// Reads a pattern; case is ignored.
    public init(_ text: String) throws(PurgeHostError) {
        var rest = Array(text.utf8).map { ASCII.lowercased($0) }[...]
        var reach = Reach.exact
        if rest.starts(with: "**.".utf8) {
            reach = .anyDepth
            rest = rest.dropFirst(3)
        } else if rest.starts(with: "*.".utf8) {
            reach = .oneLabel
            rest = rest.dropFirst(2)
        }
        let (name, port) = Authority.split(rest)
        if let port {
            guard (1...5).contains(port.count), port.allSatisfy({ ASCII.isDigit($0) }),
                let number = UInt16(String(decoding: port, as: UTF8.self)), number > 0
            else { throw .port }
            self.port = number
        } else {
            self.port = nil
        }
        guard !name.isEmpty else { throw .empty }
        let isAddress = name.first == UInt8(ascii: "[")
        let isNamed = name.allSatisfy {
            $0 > 0x20 && $0 < 0x7F && !"/?#@*\\".utf8.contains($0)
                && (isAddress || !"[]:".utf8.contains($0))
        }
        guard isNamed, !isAddress || (reach == .exact && name.last == UInt8(ascii: "]")) else {
            throw .malformed
        }
        self.reach = reach
        self.name = Array(name)
    }

    package init(_ reach: Reach, _ name: [UInt8], port: UInt16?) {
        self.reach = reach
        self.name = name
        self.port = port
    }

    public var description: String {
        let wildcard =
            switch reach {
            case .exact: ""
            case .oneLabel: "*."
            case .anyDepth: "**."
            }
        return wildcard + String(decoding: name, as: UTF8.self) + (port.map { ":\($0)" } ?? "")
    }
}

/// What a purge has done.
public struct PurgeReceipt: Sendable, Equatable {
    /// Its number, for `CacheStore.purgeProgress`. Later purges have larger ones, also after a
    /// restart.
    public let id: UInt64
    /// Responses in memory that were removed (or made stale) by the time it returned. There may be
    /// more, which nobody gets any longer.
    public var memoryEntries = 0
    /// The same on disk; only keys are counted by then.
    public var diskEntries = 0
    /// Whether nothing is left to be removed.
    public var isComplete = false
}

/// How far a purge has been carried out. What is not removed yet is found by nobody.
public struct PurgeProgress: Sendable, Equatable {
    /// Responses removed from memory, or made stale, until now.
    public var memoryEntries = 0
    /// The same on disk.
    public var diskEntries = 0
    /// Whether both tiers have been searched to the end; memory alone if the disk was handed over.
    public var isComplete = false
}

/// What has been purged since the start, for metrics.
public struct PurgeCounts: Sendable, Equatable {
    /// Responses removed from memory by purges, or made stale.
    public var memoryEntries: UInt64 = 0
    /// The same on disk.
    public var diskEntries: UInt64 = 0
    /// Patterns that are in force because they have not been carried out everywhere.
    public var patterns = 0
    /// How many there may be.
    public var patternsLimit = 0
    /// Keys that were removed, and whose rows are yet to be.
    public var waitingKeys = 0
    /// Patterns that were joined to one of everything that was stored before them, because there
    /// were too many.
    public var joined: UInt64 = 0
}

/// Why a purge is not acknowledged.
public enum PurgeError: Error, Equatable, Sendable {
    /// It could not be written to the store's folder: it is in force in this process, but what is
    /// still on disk would be found again after a restart. `detail` is the system's message.
    case notDurable(detail: String)
    /// The disk tier is not open yet, or off because of a fault: what is on disk cannot be purged
    /// now. It is in force in this process.
    case notReady
    /// The disk tier was handed over, and no process follows what is purged here (yet): it has to
    /// be asked itself. Keys can still be purged here.
    case handedOver
    /// A pattern is longer than `Purge.maximumPatternBytes`, or there are more than
    /// `Purge.maximumKeys` keys. Nothing was purged.
    case tooLarge
    /// The store has been closed. Nothing was purged.
    case closed
}
