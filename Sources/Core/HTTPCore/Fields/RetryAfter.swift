/// The Retry-After field (RFC 9110, section 10.2.3).
package enum RetryAfter {
    /// The wait in milliseconds that a field's value asks for: seconds, or a date, whose wait is 0
    /// once it is past. What is more than there are numbers for is the largest. Nil: it is neither.
    ///
    /// - Parameter now: seconds since 1970.
    package static func milliseconds(_ value: some Collection<UInt8>, now: Int64) -> Int64? {
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
