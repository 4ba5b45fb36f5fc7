import HTTPCore

/// The directives of a targeted field such as CDN-Cache-Control (RFC 9213): a structured-field
/// Dictionary whose keys are directives. All lines form one dictionary: an error in any of them
/// makes the whole field count as absent, and if a key occurs twice the last one counts (RFC 8941
/// §3.2).
struct TargetedDirectives {
    private var found = CacheDirectives()
    private var isEmpty = true
    private var isMalformed = false

    /// The field's directives; `nil` if it is absent, empty or malformed (RFC 9213 §2.2).
    var directives: CacheDirectives? { isEmpty || isMalformed ? nil : found }

    /// Adds the directives of one line.
    mutating func add(_ value: ByteRange, in bytes: Span<UInt8>) {
        var dictionary = StructuredDictionary(value)
        while true {
            switch dictionary.next(in: bytes) {
            case .member(let key, let value):
                isEmpty = false
                apply(key, value, in: bytes)
            case .malformed:
                isMalformed = true
                return
            case .end: return
            }
        }
    }

    private mutating func apply(
        _ key: ByteRange, _ value: StructuredDictionary.Value, in bytes: Span<UInt8>
    ) {
        func named(_ text: StaticString) -> Bool { bytes.holds(text, at: key) }
        switch key.count {
        case 6 where named("public"): permit(.isPublic, value)
        case 7 where named("private"): forbid(.isPrivate, value)
        case 7 where named("max-age"): Self.set(&found.maxAge, value)
        case 8 where named("no-cache"): forbid(.noCache, value)
        case 8 where named("no-store"): forbid(.noStore, value)
        case 8 where named("s-maxage"): Self.set(&found.sharedMaxAge, value)
        case 9 where named("immutable"): permit(.immutable, value)
        case 12 where named("no-transform"): forbid(.noTransform, value)
        case 14 where named("stale-if-error"): Self.set(&found.staleIfError, value)
        case 15 where named("must-revalidate"): forbid(.mustRevalidate, value)
        case 15 where named("must-understand"): permit(.mustUnderstand, value)
        case 16 where named("proxy-revalidate"): forbid(.proxyRevalidate, value)
        case 22 where named("stale-while-revalidate"):
            Self.set(&found.staleWhileRevalidate, value)
        default: break
        }
    }

    /// Directives that forbid something count in any form but `?0`; those that permit something
    /// only as `?1`, which a key without a value means.
    private mutating func forbid(
        _ flag: CacheDirectives.Flags, _ value: StructuredDictionary.Value
    ) {
        if case .boolean(false) = value {
            found.flags.remove(flag)
        } else {
            found.flags.insert(flag)
        }
    }

    private mutating func permit(
        _ flag: CacheDirectives.Flags, _ value: StructuredDictionary.Value
    ) {
        if case .boolean(true) = value {
            found.flags.insert(flag)
        } else {
            found.flags.remove(flag)
        }
    }

    /// A value of a type other than Integer is ignored; a negative number becomes 0.
    private static func set(_ seconds: inout Int64?, _ value: StructuredDictionary.Value) {
        guard case .integer(let number) = value else { return }
        seconds = min(max(number, 0), CacheDirectives.maximumSeconds)
    }
}
