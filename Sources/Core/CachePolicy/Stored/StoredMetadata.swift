import HTTPCore

/// When a stored response was asked for and received, and how old it was then.
///
/// The disk tier keeps these three numbers beside the stored head's bytes; together they are all
/// that `StoredMetadata` is rebuilt from. `Age` is not among the stored head's fields: the age
/// that came with the response lives on in `initialAge`.
package struct StoredTimes: Sendable, Equatable {
    /// Second at which the request was sent.
    package let requestTime: Int64
    /// Second at which the response's head was complete.
    package let responseTime: Int64
    /// `corrected_initial_age` of RFC 9111 §4.2.3, in seconds.
    package let initialAge: Int64

    /// The latest second that is taken for a time: keeps sums with lifetimes from overflowing
    /// whatever a damaged database says.
    package static let maximumTime: Int64 = 1 << 48

    /// Times as given, each put into 0...`maximumTime`.
    package init(requestTime: Int64, responseTime: Int64, initialAge: Int64) {
        func bounded(_ time: Int64) -> Int64 { min(max(time, 0), StoredTimes.maximumTime) }
        self.requestTime = bounded(requestTime)
        self.responseTime = bounded(responseTime)
        self.initialAge = bounded(initialAge)
    }
}

/// What rules a stored response set for its use.
package struct StoredFlags: OptionSet, Sendable {
    /// One bit for each.
    package let rawValue: UInt16
    /// The set with these bits.
    package init(rawValue: UInt16) { self.rawValue = rawValue }

    /// `no-cache`, also in its qualified form: never used without successful validation.
    package static let noCache = StoredFlags(rawValue: 1 << 0)
    /// `must-revalidate`, `proxy-revalidate` or `s-maxage`: never used stale.
    package static let neverStale = StoredFlags(rawValue: 1 << 1)
    /// `public`, `s-maxage` or `must-revalidate`, or the cache is private: may answer requests with
    /// Authorization.
    package static let sharedWithAuthorized = StoredFlags(rawValue: 1 << 2)
    /// `immutable` (RFC 8246).
    package static let immutable = StoredFlags(rawValue: 1 << 3)
    /// The entity tag is a weak one.
    package static let weakEntityTag = StoredFlags(rawValue: 1 << 4)
    /// Last-Modified is a strong validator here (RFC 9110 §8.8.2.2).
    package static let strongLastModified = StoredFlags(rawValue: 1 << 5)
    /// The stored head has a Content-Length field.
    package static let hasContentLength = StoredFlags(rawValue: 1 << 6)
    /// The stored head has a Vary field.
    package static let hasVary = StoredFlags(rawValue: 1 << 7)
}

/// Where a freshness lifetime comes from (RFC 9111 §4.2.1), the first that applies.
package enum FreshnessSource: UInt8, Sendable, CaseIterable {
    /// `s-maxage`.
    case sharedMaxAge
    /// `max-age`.
    case maxAge
    /// Expires, less Date.
    case expires
    /// A share of the time since Last-Modified (§4.2.2).
    case heuristic
    /// Nothing gives one: the lifetime is 0.
    case none
}

/// All that a decision needs to know about a stored response, without reading its head.
///
/// A value of fixed size; the ranges are offsets in the stored head's bytes. It is always made
/// from the stored head (`init(storedHead:…)`), never by hand, so that what memory says and what a
/// restart rebuilds cannot differ.
package struct StoredMetadata: Sendable, Equatable {
    /// The times the response was obtained at.
    package let times: StoredTimes
    /// First second at which the response is stale.
    package let freshUntil: Int64
    /// Freshness lifetime in seconds.
    package let lifetime: Int64
    /// Value of Date.
    package let date: Int64
    /// Value of Last-Modified; nil when absent or no date.
    package let lastModifiedTime: Int64?
    /// Seconds past its freshness for which `stale-if-error` allows use; 0 when absent.
    package let staleIfErrorSeconds: Int64
    /// Seconds past its freshness for which `stale-while-revalidate` allows use; 0 when absent.
    package let staleWhileRevalidateSeconds: Int64
    /// Length of the complete body; nil until known. From Content-Length, or set by the store
    /// when the body is complete.
    package var bodyBytes: UInt64?
    /// Value of ETag; empty when absent.
    package let entityTag: ByteRange
    /// Value of Last-Modified; empty when absent or no date.
    package let lastModified: ByteRange
    /// Bytes of the stored head.
    package let headBytes: UInt32
    /// Status code.
    package let status: UInt16
    /// Where the lifetime comes from.
    package let source: FreshnessSource
    /// The rules for its use.
    package let flags: StoredFlags

    /// Whether the origin can be asked "is this still right?" about it.
    package var hasValidator: Bool { !entityTag.isEmpty || !lastModified.isEmpty }

    /// Current age in seconds at `now` (RFC 9111 §4.2.3), never below 0.
    package func age(at now: Int64) -> Int64 {
        let resident = now &- times.responseTime
        return resident <= 0 ? times.initialAge : times.initialAge &+ resident
    }

    /// Whether it is fresh at `now`: lifetime > age. A clock that went back before the response
    /// was received makes it stale, since its age is then unknown.
    package func isFresh(at now: Int64) -> Bool {
        // One comparison for 0 <= resident < freshness left on arrival.
        freshUntil > times.responseTime
            && UInt64(bitPattern: now &- times.responseTime)
                < UInt64(bitPattern: freshUntil &- times.responseTime)
    }
}
