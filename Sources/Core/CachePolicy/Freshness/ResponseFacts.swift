import HTTPCore

/// What a response's fields say about caching, gathered field by field.
///
/// The one place that reads them: storing reads the head that came from upstream, rebuilding reads
/// the stored head, both through `absorb`.
struct ResponseFacts {
    /// Value of Expires.
    enum Expires: Equatable {
        case absent
        /// Not a date, "0" for example: already expired (RFC 9111 §5.3).
        case invalid
        case at(Int64)
    }

    var status: UInt16
    var directives = CacheDirectives()
    /// What CDN-Cache-Control says.
    private var targeted = TargetedDirectives()
    /// Value of Date; nil when absent or no date.
    var date: Int64?
    var expires = Expires.absent
    var lastModifiedTime: Int64?
    /// Value of Last-Modified; empty when absent or no date.
    var lastModified = ByteRange()
    /// Value of ETag; empty when absent.
    var entityTag = ByteRange()
    /// First member of Age, 0 when there is none or it is no number (RFC 9111 §5.1).
    var age: Int64 = 0
    var contentLength: UInt64?
    var present = FieldIDSet(rawValue: 0)
    var saysPragmaNoCache = false
    var vary = VaryNames()

    /// When the response was received; settles the century of two-digit years.
    let responseTime: Int64

    init(status: UInt16, responseTime: Int64) {
        self.status = status
        self.responseTime = responseTime
    }

    /// The facts of a parsed head, whose Cache-Control has been read already.
    init(
        _ response: ResponseHead, in bytes: Span<UInt8>, directives: CacheDirectives,
        responseTime: Int64
    ) {
        self.init(status: response.status, responseTime: responseTime)
        self.directives = directives
        // By index, for the reason told at `FieldLines`.
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

    /// Takes in one field line, in the head's order.
    mutating func absorb(_ id: FieldID, _ value: ByteRange, in bytes: Span<UInt8>) {
        let isFirst = !present.contains(id)
        present.insert(id)
        switch id {
        case .cacheControl: directives.add(value, in: bytes)
        case .cdnCacheControl: targeted.add(value, in: bytes)
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
            if CacheDirectives.saysNoCache(value, in: bytes) { saysPragmaNoCache = true }
        case .vary: vary.add(value, in: bytes)
        default: break
        }
    }

    /// To be called when all fields are absorbed: a private cache leaves out what is for shared
    /// only; CDN-Cache-Control takes the place of Cache-Control and Expires, where it is meant for
    /// this cache and can be read (RFC 9213 §2.2).
    mutating func settle(_ options: PolicyOptions) {
        if !options.isShared { directives.readAsPrivateCache() }
        guard options.honoursCDNCacheControl, let chosen = targeted.directives else { return }
        directives = chosen
        expires = .absent
        saysPragmaNoCache = false
    }

    private func time(_ value: ByteRange, in bytes: Span<UInt8>) -> Int64? {
        HTTPDate.parse(bytes.extracting(value.indices), now: responseTime)
    }

    /// The earliest of several Expires lines counts, and one that is no date is earlier than all.
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

    /// RFC 9111 §5.1: of a list the first member counts; what is not a non-negative integer is
    /// ignored.
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

    /// Freshness lifetime in seconds and where it comes from (RFC 9111 §4.2.1).
    func lifetime(
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
            !saysPragmaNoCache, let lastModifiedTime, lastModifiedTime < origin
        else { return (0, .none) }
        let share = (origin - lastModifiedTime) * options.heuristicPercent / 100
        return (min(share, options.heuristicMaximumSeconds), .heuristic)
    }

    /// Whether Last-Modified can be relied on to change with every change of the content: it is at
    /// least a second before Date (RFC 9110 §8.8.2.2).
    var isLastModifiedStrong: Bool {
        guard let lastModifiedTime, let date else { return false }
        return lastModifiedTime < date
    }
}

/// An unsigned decimal number.
enum DecimalNumber {
    /// The number; nil when the range is empty, has anything but digits, or overflows.
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
