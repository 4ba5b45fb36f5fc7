import HTTPCore

/// When a stored response was requested and received, and its age on arrival.
///
/// The disk tier keeps these three numbers beside the stored head's bytes; together they are
/// everything that `StoredMetadata` is rebuilt from. `Age` is not among the stored head's fields:
/// the age that the response arrived with is kept in `initialAge`.
public struct StoredTimes: Sendable, Equatable {
    /// The second at which the request was sent.
    public let requestTime: Int64
    /// The second at which the response's head was complete.
    public let responseTime: Int64
    /// `corrected_initial_age` of RFC 9111 §4.2.3, in seconds.
    public let initialAge: Int64

    /// The latest second that is accepted: keeps sums with lifetimes from overflowing whatever a
    /// damaged database contains.
    public static let maximumTime: Int64 = 1 << 48

    /// Creates times, each clamped to 0...`maximumTime`.
    public init(requestTime: Int64, responseTime: Int64, initialAge: Int64) {
        func bounded(_ time: Int64) -> Int64 { min(max(time, 0), StoredTimes.maximumTime) }
        self.requestTime = bounded(requestTime)
        self.responseTime = bounded(responseTime)
        self.initialAge = bounded(initialAge)
    }
}

/// The rules that a stored response set for its use.
public struct StoredFlags: OptionSet, Sendable {
    /// One bit for each flag.
    public let rawValue: UInt16
    /// Creates a set from its bits.
    @inlinable public init(rawValue: UInt16) { self.rawValue = rawValue }

    /// `no-cache`, unqualified: never used without successful validation.
    @inlinable public static var noCache: StoredFlags { StoredFlags(rawValue: 1 << 0) }
    /// `must-revalidate`, `proxy-revalidate` or `s-maxage`: never used stale.
    @inlinable public static var neverStale: StoredFlags { StoredFlags(rawValue: 1 << 1) }
    /// `public`, `s-maxage` or `must-revalidate`, or the cache is private: may answer requests with
    /// Authorization.
    @inlinable public static var sharedWithAuthorized: StoredFlags { StoredFlags(rawValue: 1 << 2) }
    /// `immutable` (RFC 8246).
    @inlinable public static var immutable: StoredFlags { StoredFlags(rawValue: 1 << 3) }
    /// The entity tag is weak.
    @inlinable public static var weakEntityTag: StoredFlags { StoredFlags(rawValue: 1 << 4) }
    /// Last-Modified is a strong validator here (RFC 9110 §8.8.2.2).
    @inlinable public static var strongLastModified: StoredFlags { StoredFlags(rawValue: 1 << 5) }
    /// The stored head has a Content-Length field.
    @inlinable public static var hasContentLength: StoredFlags { StoredFlags(rawValue: 1 << 6) }
    /// The stored head has a Vary field.
    @inlinable public static var hasVary: StoredFlags { StoredFlags(rawValue: 1 << 7) }
    /// The stored head has a field that `no-cache` names: left out unless just validated.
    @inlinable public static var withholdsUnvalidated: StoredFlags {
        StoredFlags(rawValue: 1 << 8)
    }
    /// The stored head has a field that `private` names, because it was stored under another
    /// configuration: left out.
    @inlinable public static var withholdsPrivate: StoredFlags { StoredFlags(rawValue: 1 << 9) }

    /// Trailers follow the fields of the stored head (`StoredTrailers`).
    @inlinable public static var hasTrailers: StoredFlags { StoredFlags(rawValue: 1 << 10) }

    /// Whether the fields of a hit are not simply all bytes of the stored head.
    @inlinable @inline(__always)
    var hasMoreThanFields: Bool {
        !isDisjoint(with: [.withholdsUnvalidated, .withholdsPrivate, .hasTrailers])
    }

    /// Whether some field of the stored head is left out unless the response was just validated.
    var isWithholding: Bool { !isDisjoint(with: [.withholdsUnvalidated, .withholdsPrivate]) }

    /// The head is that of a whole representation of which parts are stored, as entries of their
    /// own.
    @inlinable public static var parts: StoredFlags { StoredFlags(rawValue: 1 << 11) }

    /// The content is encoded, for clients whatever they accept: it may have to be decoded for some
    /// (`StoredCoding`).
    @inlinable public static var encoded: StoredFlags { StoredFlags(rawValue: 1 << 14) }
    /// The content is not encoded, and is compressed for clients that accept that.
    @inlinable public static var compressible: StoredFlags { StoredFlags(rawValue: 1 << 15) }
    /// A hit may be more than the stored head and content.
    @inlinable public static var hasOtherForms: StoredFlags {
        StoredFlags(rawValue: 1 << 11 | 1 << 14 | 1 << 15)
    }
    /// The client's Accept-Encoding decides about the form in which the content is sent.
    @inlinable public static var dependsOnCoding: StoredFlags {
        StoredFlags(rawValue: 1 << 14 | 1 << 15)
    }
}

/// Where a freshness lifetime comes from (RFC 9111 §4.2.1); the first that applies.
public enum FreshnessSource: UInt8, Sendable, CaseIterable {
    /// `s-maxage`.
    case sharedMaxAge
    /// `max-age`.
    case maxAge
    /// Expires, less Date.
    case expires
    /// A percentage of the time since Last-Modified (§4.2.2).
    case heuristic
    /// A rule of the route.
    case rule
    /// No source: the lifetime is 0.
    case none
}

/// Everything that a decision needs to know about a stored response, without reading its head.
///
/// A value of fixed size; the ranges are offsets in the stored head's bytes. It is always computed
/// from the stored head (`init(storedHead:…)`), never assembled by hand, so that the value in
/// memory and the one rebuilt after a restart cannot differ.
public struct StoredMetadata: Sendable, Equatable {
    /// When the response was requested and received.
    public let times: StoredTimes
    /// The first second at which the response is stale.
    public internal(set) var freshUntil: Int64
    /// The freshness lifetime in seconds.
    public internal(set) var lifetime: Int64
    /// Value of Date.
    public let date: Int64
    /// The value of Last-Modified; `nil` if absent or not a date.
    public let lastModifiedTime: Int64?
    /// For how many seconds after becoming stale `stale-if-error` allows use; 0 if absent.
    public let staleIfErrorSeconds: Int64
    /// For how many seconds after becoming stale `stale-while-revalidate` allows use; 0 if absent.
    public let staleWhileRevalidateSeconds: Int64
    /// The length of the complete body; `nil` until known. Taken from Content-Length, or set by the
    /// store when the body is complete.
    public var bodyBytes: UInt64?
    /// The value of ETag; empty if absent.
    public let entityTag: ByteRange
    /// The value of Last-Modified; empty if absent or not a date.
    public let lastModified: ByteRange
    /// The size of the stored head in bytes.
    public internal(set) var headBytes: UInt32
    /// Status code.
    public let status: UInt16
    /// Where the lifetime comes from.
    public let source: FreshnessSource
    /// The rules for its use.
    public internal(set) var flags: StoredFlags

    /// The same for a response that the origin has just confirmed: no field is left out.
    public var confirmed: StoredMetadata {
        var confirmed = self
        confirmed.flags.subtract([.withholdsUnvalidated, .withholdsPrivate])
        return confirmed
    }

    /// The same for a response of which parts are stored.
    public var ofParts: StoredMetadata {
        var parts = self
        parts.flags.insert(.parts)
        return parts
    }

    /// The same for a response that was made stale at a second, unless it was stale already.
    public func stale(since time: Int64) -> StoredMetadata {
        var stale = self
        stale.freshUntil = min(freshUntil, time)
        // Its age at that second: what is not fresh is judged by the lifetime.
        let age = times.initialAge &+ max(0, time &- times.responseTime)
        stale.lifetime = min(lifetime, age)
        return stale
    }

    /// Whether the origin can be asked to validate it.
    public var hasValidator: Bool { !entityTag.isEmpty || !lastModified.isEmpty }

    /// Current age in seconds at `now` (RFC 9111 §4.2.3), never below 0.
    public func age(at now: Int64) -> Int64 {
        let resident = now &- times.responseTime
        return resident <= 0 ? times.initialAge : times.initialAge &+ resident
    }

    /// Seconds of freshness left at `now`, negative if it is stale: lifetime - age, or less if it
    /// was made stale.
    @inlinable public func timeToLive(at now: Int64) -> Int64 {
        freshUntil &- max(now, times.responseTime)
    }

    /// Whether it is fresh at `now`: lifetime > age. If the clock was set back to before the
    /// response was received, it counts as stale, since its age is unknown.
    public func isFresh(at now: Int64) -> Bool {
        // One comparison for 0 <= resident < freshness left on arrival.
        freshUntil > times.responseTime
            && UInt64(bitPattern: now &- times.responseTime)
                < UInt64(bitPattern: freshUntil &- times.responseTime)
    }
}
