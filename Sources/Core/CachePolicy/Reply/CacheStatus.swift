import HTTPCore

/// This cache's member of a response's Cache-Status (RFC 9211).
///
/// Upstream's members are kept, and this cache's member follows on a separate line: the list is
/// ordered from the origin outwards (§2).
public enum CacheStatus: Sendable, Equatable {
    /// Answered from the cache, without asking the origin.
    case hit(timeToLive: Int64, stale: StaleUse?, isShared: Bool = false)
    /// The origin was asked.
    case forwarded(Forwarded)
    /// The gateway generated the reply and forwarded nothing: `only-if-cached` without a hit, a
    /// refusal, a server that cannot be reached.
    case notForwarded(ForwardReason)

    /// The details of a request that was forwarded to the origin.
    public struct Forwarded: Sendable, Equatable {
        /// Why it was forwarded.
        public var reason: ForwardReason
        /// The status that the origin answered with; `nil` if it is the response's own (§2.3) or if
        /// there was no answer.
        public var status: UInt16?
        /// Whether the response is being stored.
        public var isStored: Bool
        /// Whether the request waited for the response to another one (§2.6).
        public var isCollapsed: Bool
        /// Why the response is not stored; `nil` if it is.
        public var notStored: NotStoredReason?

        /// Creates the details, in the order in which they are written.
        public init(
            reason: ForwardReason, status: UInt16? = nil, isStored: Bool = false,
            isCollapsed: Bool = false, notStored: NotStoredReason? = nil
        ) {
            self.reason = reason
            self.status = status
            self.isStored = isStored
            self.isCollapsed = isCollapsed
            self.notStored = notStored
        }
    }

    /// The Cache-Status of a hit.
    public init(_ hit: CacheHit) {
        self = .hit(timeToLive: hit.timeToLive, stale: hit.stale, isShared: hit.isShared)
    }

    /// The maximum number of bytes that `append` writes for a line.
    public static let maximumLineBytes = 192

    /// Appends the field line with its CRLF, for example `Cache-Status: pinfold; hit; ttl=57`. Does
    /// not allocate: every response has this field, and a general serializer of structured fields,
    /// like the one that writes `Proxy-Status`, would first create a map and a string.
    @inlinable public func append(to writer: inout HeadWriter) {
        switch self {
        case .hit(let timeToLive, let stale, let isShared):
            return Self.append(timeToLive, stale, isShared, to: &writer)
        case .forwarded(let forwarded):
            Self.append(forwarded, to: &writer)
        case .notForwarded(let reason):
            writer.append("Cache-Status: pinfold; detail=")
            writer.append(reason.token)
        }
        writer.appendLineEnd()
    }

    /// Appends the field line of a hit.
    @inlinable @inline(__always)
    public static func append(_ hit: CacheHit, to writer: inout HeadWriter) {
        append(hit.timeToLive, hit.stale, hit.isShared, to: &writer)
    }

    @inlinable @inline(__always)
    static func append(
        _ timeToLive: Int64, _ stale: StaleUse?, _ isShared: Bool, to writer: inout HeadWriter
    ) {
        writer.append("Cache-Status: pinfold; hit; ttl=")
        if timeToLive < 0 { writer.append(byte: UInt8(ascii: "-")) }
        writer.append(decimal: timeToLive.magnitude)
        if let stale {
            writer.append("; detail=")
            writer.append(stale.token)
        } else if isShared {
            writer.append("; detail=shared")
        }
        writer.appendLineEnd()
    }

    @inlinable @inline(__always)
    static func append(_ forwarded: Forwarded, to writer: inout HeadWriter) {
        writer.append("Cache-Status: pinfold; fwd=")
        writer.append(forwarded.reason.cacheStatus)
        if let status = forwarded.status {
            writer.append("; fwd-status=")
            writer.append(decimal: UInt64(status))
        }
        if forwarded.isStored { writer.append("; stored") }
        if forwarded.isCollapsed { writer.append("; collapsed") }
        if !forwarded.isStored, let reason = forwarded.notStored {
            writer.append("; detail=")
            writer.append(reason.token)
        } else if forwarded.reason.needsDetail {
            writer.append("; detail=")
            writer.append(forwarded.reason.token)
        }
    }
}

extension ForwardReason {
    /// Whether the `fwd` value is less specific than the reason.
    @inlinable var needsDetail: Bool {
        switch self {
        case .uriMiss, .varyMiss, .method, .bypass, .stale, .partial: false
        case .policy, .bypassField, .requestContent, .keyTooLong, .upgrade, .requestNoCache,
            .requestNoStore, .requestMaxAge, .requestMinFresh, .requestPrecondition,
            .authorization, .responseNoCache, .clock, .damaged, .coding:
            true
        }
    }
}
