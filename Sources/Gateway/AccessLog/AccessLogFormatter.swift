import Addressing
import HTTPCore
import Metrics

/// Makes lines of the access log's records.
///
/// JSON keys, in order: `time` (RFC 3339, UTC, milliseconds), `id`, `client`, `listener`, `route`,
/// `method`, `target`, `version`, `status` (null if none was sent), `duration_us`, `request_bytes`,
/// `response_bytes`, `cache`, and, where there is one, `upstream`, `upstream_tls`, `reason`,
/// `user_agent`, `referer`.
struct AccessLogFormatter {
    private let format: AccessLogFormat
    /// Label values, already escaped for the format, and the one for indexes without a label.
    private let listeners: [[UInt8]]
    private let routes: [[UInt8]]
    private let reasons: [StaticString]
    private var clock = LogClock()

    init(format: AccessLogFormat, labels: AccessLogLabels) {
        self.format = format
        listeners = labels.listeners.labels.map { AccessLogFormatter.escaped($0) }
        routes = labels.routes.labels.map { AccessLogFormatter.escaped($0) }
        reasons = labels.reasons
    }

    /// Appends an entry's line, with its line feed.
    mutating func append(_ entry: AccessLogRing.Entry, to output: inout [UInt8]) {
        switch format {
        case .json: appendJSON(entry, to: &output)
        case .combined: appendCombined(entry, to: &output)
        }
    }

    // MARK: JSON

    private mutating func appendJSON(
        _ entry: AccessLogRing.Entry, to output: inout [UInt8]
    ) {
        let record = entry.record
        output.append("{\"time\":\"")
        clock.appendRFC3339(record.timeMilliseconds, to: &output)
        output.append("\",\"id\":\"")
        output.append(hexadecimal: record.exchange)
        output.append("\",\"client\":\"")
        let client = Endpoint(address: record.clientAddress, port: record.clientPort)
        client.text.withUnsafeBytes { output.append(contentsOf: $0) }
        output.append("\",\"listener\":\"")
        append(label: record.listener, of: listeners, to: &output)
        output.append("\",\"route\":\"")
        append(label: record.route, of: routes, to: &output)
        output.append("\",\"method\":\"")
        JSONText.append(entry.method, to: &output)
        output.append("\",\"target\":\"")
        Userinfo.redacting(entry.target) { JSONText.append($0, to: &output) }
        output.append("\",\"version\":\"")
        output.append(record.version.label)
        output.append("\",\"status\":")
        if record.status > 0 {
            output.append(decimal: UInt64(record.status))
        } else {
            output.append("null")
        }
        output.append(",\"duration_us\":")
        output.append(decimal: record.durationMicroseconds)
        output.append(",\"request_bytes\":")
        output.append(decimal: record.requestBytes)
        output.append(",\"response_bytes\":")
        output.append(decimal: record.responseBytes)
        output.append(",\"cache\":\"")
        output.append(record.cache.label)
        output.append("\"")
        appendOptionalJSON(entry, to: &output)
        output.append("}\n")
    }

    private func appendOptionalJSON(
        _ entry: AccessLogRing.Entry, to output: inout [UInt8]
    ) {
        let record = entry.record
        if let address = record.upstreamAddress {
            output.append(",\"upstream\":\"")
            let upstream = Endpoint(address: address, port: record.upstreamPort)
            upstream.text.withUnsafeBytes { output.append(contentsOf: $0) }
            output.append("\"")
        }
        if record.upstreamTLS != .none {
            output.append(",\"upstream_tls\":\"")
            output.append(record.upstreamTLS.label)
            output.append("\"")
        }
        if let reason = record.reason {
            output.append(",\"reason\":\"")
            let index = Int(reason)
            output.append(index < reasons.count ? reasons[index] : "other")
            output.append("\"")
        }
        if !entry.userAgent.isEmpty {
            output.append(",\"user_agent\":\"")
            JSONText.append(entry.userAgent, to: &output)
            output.append("\"")
        }
        if !entry.referer.isEmpty {
            output.append(",\"referer\":\"")
            Userinfo.redacting(entry.referer) { JSONText.append($0, to: &output) }
            output.append("\"")
        }
    }

    private func append(
        label index: UInt16, of labels: [[UInt8]], to output: inout [UInt8]
    ) {
        let index = Int(index)
        if index < labels.count {
            output.append(contentsOf: labels[index])
        } else {
            output.append("other")
        }
    }

    private static func escaped(_ label: String) -> [UInt8] {
        var bytes: [UInt8] = []
        Array(label.utf8).withUnsafeBytes { JSONText.append($0, to: &bytes) }
        return bytes
    }

    // MARK: Apache's combined format

    /// `%h - - %t "%r" %>s %b "%{Referer}i" "%{User-Agent}i"`
    private mutating func appendCombined(
        _ entry: AccessLogRing.Entry, to output: inout [UInt8]
    ) {
        let record = entry.record
        record.clientAddress.text.withUnsafeBytes { output.append(contentsOf: $0) }
        output.append(" - - [")
        clock.appendCommonLog(record.timeMilliseconds, to: &output)
        output.append("] \"")
        if entry.method.isEmpty && entry.target.isEmpty {
            output.append("-")
        } else {
            ApacheText.append(entry.method, to: &output)
            output.append(" ")
            Userinfo.redacting(entry.target) { ApacheText.append($0, to: &output) }
            if record.version != nil {
                output.append(" ")
                output.append(record.version.label)
            }
        }
        output.append("\" ")
        append(orDash: UInt64(record.status), to: &output)
        output.append(" ")
        append(orDash: record.responseBytes, to: &output)
        output.append(" \"")
        if entry.referer.isEmpty { output.append("-") }
        Userinfo.redacting(entry.referer) { ApacheText.append($0, to: &output) }
        output.append("\" \"")
        if entry.userAgent.isEmpty { output.append("-") }
        ApacheText.append(entry.userAgent, to: &output)
        output.append("\"\n")
    }

    private func append(orDash number: UInt64, to output: inout [UInt8]) {
        if number == 0 { output.append("-") } else { output.append(decimal: number) }
    }
}

extension HTTPVersion? {
    fileprivate var label: StaticString {
        switch self {
        case .http10: "HTTP/1.0"
        case .http11: "HTTP/1.1"
        case nil: ""
        }
    }
}

extension [UInt8] {
    /// Appends a constant text.
    mutating func append(_ text: StaticString) {
        text.withUTF8Buffer { append(contentsOf: $0) }
    }

    /// Appends a number in decimal.
    mutating func append(decimal value: UInt64) {
        var digits = InlineArray<20, UInt8>(repeating: 0)
        var start = 20
        var rest = value
        repeat {
            start -= 1
            digits[start] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
            rest /= 10
        } while rest > 0
        for index in start..<20 { append(digits[index]) }
    }

    /// Appends a number's last digits in decimal, with leading zeros.
    mutating func append(decimal value: Int, digits: Int) {
        var unit = 1
        for _ in 1..<digits { unit *= 10 }
        while unit > 0 {
            append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: value / unit % 10))
            unit /= 10
        }
    }

    /// Appends a number as 16 hexadecimal digits.
    mutating func append(hexadecimal value: UInt64) {
        for shift in stride(from: UInt64(60), through: 0, by: -4) {
            append(hexadecimalDigit: UInt8(truncatingIfNeeded: value >> shift & 15))
        }
    }

    /// Appends a digit from 0 to 15.
    mutating func append(hexadecimalDigit digit: UInt8) {
        append(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10)
    }
}
