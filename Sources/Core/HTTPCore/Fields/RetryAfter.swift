/// The Retry-After field (RFC 9110 §10.2.3).
public enum RetryAfter {
    /// The wait that a field's value asks for, in milliseconds: seconds, or a date, for which the
    /// wait is 0 once it has passed. Values that would overflow give the largest number. `nil` if
    /// it is neither.
    ///
    /// - Parameter now: seconds since 1970.
    public static func milliseconds(_ value: some Collection<UInt8>, now: Int64) -> Int64? {
        let bytes = Array(Array(value).withoutOuterSpace)
        guard !bytes.isEmpty else { return nil }
        let seconds: Int64
        if bytes.allSatisfy(ASCII.isDigit) {
            seconds = Int64(String(decoding: bytes, as: UTF8.self)) ?? .max
        } else {
            guard let date = HTTPDate.parse(bytes.span, now: now) else { return nil }
            seconds = max(date - now, 0)
        }
        let (milliseconds, isTooLarge) = seconds.multipliedReportingOverflow(by: 1000)
        return isTooLarge ? .max : milliseconds
    }
}
