import HTTPCore

/// The caching information in a response's fields, collected field by field.
///
/// This is the only code that reads it: storing uses the head received from upstream, rebuilding
/// uses the stored head, both through `absorb`.
struct ResponseFacts {
    /// The value of Expires.
    enum Expires: Equatable {
        case absent
        /// Not a date, for example "0": already expired (RFC 9111 §5.3).
        case invalid
        case at(Int64)
    }

    var status: UInt16
    var directives = CacheDirectives()
    /// The value of Date; `nil` if absent or not a date.
    var date: Int64?
    var expires = Expires.absent
    var lastModifiedTime: Int64?
    /// The value of Last-Modified; empty if absent or not a date.
    var lastModified = ByteRange()
    /// The value of ETag; empty if absent.
    var entityTag = ByteRange()
    /// The first member of Age; 0 if there is none or it is not a number (RFC 9111 §5.1).
    var age: Int64 = 0
    var contentLength: UInt64?
    var present = FieldIDSet(rawValue: 0)
    var hasPragmaNoCache = false
    var vary = VaryNames()

    /// When the response was received; determines the century of two-digit years.
    let responseTime: Int64

    init(status: UInt16, responseTime: Int64) {
        self.status = status
        self.responseTime = responseTime
    }

    /// The facts of a parsed head whose Cache-Control has already been read.
    init(
        _ response: ResponseHead, in bytes: Span<UInt8>, directives: CacheDirectives,
        responseTime: Int64
    ) {
        self.init(status: response.status, responseTime: responseTime)
        self.directives = directives
        // By index, for the reason given at `FieldValueIterator`.
        for index in 0..<response.fields.endIndex {
            let field = response.fields[index]
            switch field.id {
            case .other, .cacheControl: continue
            default: absorb(field.id, field.value, in: bytes)
            }
        }
    }

    /// The facts of a parsed head.
    init(_ response: ResponseHead, in bytes: Span<UInt8>, responseTime: Int64) {
        self.init(
            response, in: bytes,
            directives: CacheDirectives(response: response.fields, in: bytes),
            responseTime: responseTime)
    }

    /// Reads one field line; to be called in the head's order.
    mutating func absorb(_ id: FieldID, _ value: ByteRange, in bytes: Span<UInt8>) {
        let isFirst = !present.contains(id)
        present.insert(id)
        switch id {
        case .cacheControl: directives.add(value, in: bytes)
        case .date where isFirst: date = time(value, in: bytes)
        case .expires: absorbExpires(value, in: bytes)
        case .lastModified where isFirst:
            if let time = self.time(value, in: bytes) {
                lastModifiedTime = time
                lastModified = value
            }
        case .etag where isFirst: entityTag = value
        case .age where isFirst: age = Self.firstAge(value, in: bytes)
        case .contentLength where isFirst:
            contentLength = DecimalNumber.parse(value, in: bytes)
        case .pragma:
            if CacheDirectives.hasNoCache(value, in: bytes) { hasPragmaNoCache = true }
        case .vary: vary.add(value, in: bytes)
        default: break
        }
    }

    /// To be called after all fields, and after ``target(_:)``: for a private cache, removes what
    /// applies only to shared ones; on a route with rules, what does not count there.
    mutating func settle(_ options: PolicyOptions) {
        if !options.isShared { directives.readAsPrivateCache() }
        guard let route = options.box?.options else { return }
        override(route.overrides)
        if directives.staleIfError == nil, route.staleIfErrorSeconds > 0 {
            directives.staleIfError = route.staleIfErrorSeconds
        }
    }

    private func time(_ value: ByteRange, in bytes: Span<UInt8>) -> Int64? {
        HTTPDate.parse(bytes.extracting(value.indices), now: responseTime)
    }

    /// Of several Expires lines the earliest counts; a value that is not a date is earlier than all
    /// dates.
    private mutating func absorbExpires(_ value: ByteRange, in bytes: Span<UInt8>) {
        guard expires != .invalid else { return }
        guard let time = self.time(value, in: bytes) else {
            expires = .invalid
            return
        }
        if case .at(let earlier) = expires {
            expires = .at(min(earlier, time))
        } else {
            expires = .at(time)
        }
    }

    /// RFC 9111 §5.1: in a list the first member counts; a value that is not a non-negative integer
    /// is ignored.
    private static func firstAge(_ value: ByteRange, in bytes: Span<UInt8>) -> Int64 {
        var end = Int(value.start)
        while end < Int(value.end), bytes[end] != UInt8(ascii: ",") { end += 1 }
        while end > Int(value.start), ASCII.isWhitespace(bytes[end - 1]) { end -= 1 }
        return DeltaSeconds.parse(ByteRange(from: Int(value.start), to: end), in: bytes) ?? 0
    }

    /// `corrected_initial_age` (RFC 9111 §4.2.3), in seconds.
    func initialAge(requestTime: Int64) -> Int64 {
        let apparentAge = date.map { max(0, responseTime - $0) } ?? 0
        let responseDelay = max(0, responseTime - requestTime)
        return max(apparentAge, age + responseDelay)
    }

    /// The freshness lifetime in seconds and its source (RFC 9111 §4.2.1), as the route has it.
    func lifetime(
        hasQuery: Bool, options: PolicyOptions
    ) -> (seconds: Int64, source: FreshnessSource) {
        let standard = standardLifetime(hasQuery: hasQuery, options: options)
        guard let route = options.box?.options else { return standard }
        return lifetime(standard, by: route.freshness)
    }

    private func standardLifetime(
        hasQuery: Bool, options: PolicyOptions
    ) -> (seconds: Int64, source: FreshnessSource) {
        if let seconds = directives.sharedMaxAge { return (seconds, .sharedMaxAge) }
        if let seconds = directives.maxAge { return (seconds, .maxAge) }
        let origin = date ?? responseTime
        switch expires {
        case .invalid: return (0, .expires)
        case .at(let time):
            return (min(max(0, time - origin), CacheDirectives.maximumSeconds), .expires)
        case .absent: break
        }
        guard options.heuristicPercent > 0, !hasQuery || options.heuristicForQueries,
            StatusRules.isHeuristicallyCacheable(status) || directives.flags.contains(.isPublic),
            !hasPragmaNoCache, let lastModifiedTime, lastModifiedTime < origin
        else { return (0, .none) }
        let share = (origin - lastModifiedTime) * options.heuristicPercent / 100
        return (min(share, options.heuristicMaximumSeconds), .heuristic)
    }

    /// Whether Last-Modified can be relied on to change whenever the content does: it is at least a
    /// second before Date (RFC 9110 §8.8.2.2).
    var isLastModifiedStrong: Bool {
        guard let lastModifiedTime, let date else { return false }
        return lastModifiedTime < date
    }
}

/// An unsigned decimal number.
enum DecimalNumber {
    /// The number; `nil` if the range is empty, contains anything but digits, or overflows.
    static func parse(_ range: ByteRange, in bytes: Span<UInt8>) -> UInt64? {
        guard !range.isEmpty else { return nil }
        var value: UInt64 = 0
        for index in range.indices {
            let digit = bytes[index] &- UInt8(ascii: "0")
            guard digit < 10 else { return nil }
            let (product, overflow) = value.multipliedReportingOverflow(by: 10)
            let (sum, carry) = product.addingReportingOverflow(UInt64(digit))
            guard !overflow, !carry else { return nil }
            value = sum
        }
        return value
    }
}
