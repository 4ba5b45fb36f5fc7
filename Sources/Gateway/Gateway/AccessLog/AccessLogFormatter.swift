import HTTPCore
import PinfoldConfiguration
import PinfoldMetrics
import PinfoldTLS

/// Formats the access log's records as lines.
///
/// JSON keys, in order: `time` (RFC 3339, UTC, milliseconds), `id`, `client`, `listener`, `host`,
/// `method`, `target`, `version`, `status` (null if none was sent), `duration_us`, those of
/// `queue_us`, `dns_us`, `connect_us`, `tls_us`, `first_byte_us` and `body_us` that happened
/// (``Phase``), `request_bytes`, `response_bytes`, `cache`, and, if present, `forwarded` (why the
/// server was asked), `not_stored` (why its response was not stored), `trace` (the trace that it
/// belongs to), `intercepted` (true for an intercepted CONNECT, and for requests in its tunnel),
/// `passed` (why a tunnel to an intercepted host was relayed), `inspected`
/// (the result of verifying the server of a tunnel), `changed` (what the rules of its route changed
/// in the content), `user` (who was asking, where the listener wanted to know), `tunnel` (what a
/// request's tunnel was opened to), `authority` (what a request at a transparent listener is for),
/// `original` (the address that its client connected to, if it is none of the host's),
/// `client_tls`, `client_cipher`
/// and `client_subject` (the client's TLS version, cipher suite and certificate subject),
/// `parent` (the parent proxy that it went through), `upstream`, `reused` (whether its connection
/// was there before), `upstream_version`,
/// `upstream_tls`, `reason` (why the exchange was refused or
/// failed), `rule` (the access rule that decided), `reported` (access rules that matched and only
/// report), `user_agent`, `referer`, `sample` (of how many exchanges like it there is a line).
/// `log.access.fields` chooses among them (`AccessLogFormatter+Fields`).
struct AccessLogFormatter {
    private let format: AccessLogFormat
    /// What a JSON line tells; `nil` for everything.
    private let fields: [ChosenField]?
    /// Label values, already escaped for the format.
    let listeners: EscapedLabels
    let hosts: EscapedLabels
    let reasons: [[UInt8]]
    var clock = LogClock()

    init(_ request: AccessLogRequest) {
        self.init(format: request.format, fields: request.fields, labels: request.labels)
    }

    init(format: AccessLogFormat, fields: [AccessLogField] = [], labels: AccessLogLabels) {
        self.format = format
        self.fields = fields.isEmpty ? nil : fields.map(ChosenField.init)
        listeners = EscapedLabels(labels.listeners)
        hosts = EscapedLabels(labels.hosts)
        reasons = labels.reasons.map { Array($0.utf8) }
    }

    /// Appends an entry's line, with its line feed. Returns `false` if it did not fit; nothing is
    /// appended then.
    mutating func append(_ entry: FlowQueue.Entry, to output: inout LineBuffer) -> Bool {
        switch format {
        case .json:
            if let fields {
                appendChosen(fields, of: entry, to: &output)
            } else {
                appendJSON(entry, to: &output)
            }
        case .combined: appendCombined(entry, to: &output)
        }
        return output.endLine()
    }

    // MARK: JSON

    private mutating func appendJSON(
        _ entry: FlowQueue.Entry, to output: inout LineBuffer
    ) {
        let (record, counted) = (entry.record, entry.record.counted)
        output.append("{\"time\":\"")
        clock.appendRFC3339(record.timeMilliseconds, to: &output)
        output.append("\",\"id\":\"")
        output.append(hexadecimal: record.exchange)
        output.append("\",\"client\":\"")
        let client = Endpoint(address: record.clientAddress, port: record.clientPort)
        client.clientText.withUnsafeBytes { output.append($0) }
        output.append("\",\"listener\":\"")
        listeners.append(counted.route.listener, to: &output)
        output.append("\",\"host\":\"")
        hosts.append(counted.route.host, to: &output)
        output.append("\",\"method\":\"")
        JSONText.append(entry.method, to: &output)
        output.append("\",\"target\":\"")
        Userinfo.redacting(entry.target) { JSONText.append($0, to: &output) }
        output.append("\",\"version\":\"")
        output.append(record.protocolLabel)
        output.append("\",\"status\":")
        appendStatus(of: entry, to: &output)
        output.append(",\"duration_us\":")
        output.append(decimal: counted.durationMicroseconds)
        for phase in Phase.allCases {
            guard let microseconds = record.phases[phase] else { continue }
            output.append(",\"")
            output.append(phase.label)
            output.append("_us\":")
            output.append(decimal: microseconds)
        }
        output.append(",\"request_bytes\":")
        output.append(decimal: counted.requestBytes)
        output.append(",\"response_bytes\":")
        output.append(decimal: counted.responseBytes)
        output.append(",\"cache\":\"")
        output.append(counted.cache.label)
        output.append("\"")
        appendOptionalJSON(entry, to: &output)
        output.append("}")
    }

    /// Appends the status; null if none was sent.
    @inline(__always)
    func appendStatus(of entry: FlowQueue.Entry, to output: inout LineBuffer) {
        let status = entry.record.counted.status
        if status > 0 {
            output.append(decimal: UInt64(status))
        } else {
            output.append("null")
        }
    }

    private func appendOptionalJSON(
        _ entry: FlowQueue.Entry, to output: inout LineBuffer
    ) {
        let record = entry.record
        append("forwarded", record.forwarded?.token, to: &output)
        append("not_stored", record.notStored?.token, to: &output)
        if let trace = record.trace {
            append("trace", to: &output) { $0.append(trace.id) }
        }
        appendClientJSON(entry, to: &output)
        if record.upstreamAddress != .unnamed { append("parent", entry.way, to: &output) }
        appendUpstream(of: entry, to: &output)
        if let isReused = record.isReused {
            output.append(isReused ? ",\"reused\":true" : ",\"reused\":false")
        }
        append("upstream_version", record.upstreamVersion?.text, to: &output)
        append("upstream_tls", record.upstreamTLS?.label, to: &output)
        if let reason = record.counted.failure {
            append("reason", to: &output) { append(label: reason, of: reasons, to: &$0) }
        }
        append("rule", entry.rule, to: &output)
        append("reported", entry.reported, to: &output)
        append("user_agent", entry.userAgent, to: &output)
        if !entry.referer.isEmpty {
            append("referer", to: &output) { output in
                Userinfo.redacting(entry.referer) { JSONText.append($0, to: &output) }
            }
        }
        if record.sampleMillionths > 0 {
            output.append(",\"sample\":")
            output.append(share: record.sampleMillionths)
        }
    }

    private func appendClientJSON(
        _ entry: FlowQueue.Entry, to output: inout LineBuffer
    ) {
        if entry.record.isIntercepted { output.append(",\"intercepted\":true") }
        append("passed", entry.record.interceptionPass?.label, to: &output)
        append("inspected", entry.record.inspection?.label, to: &output)
        append("changed", entry.steps, to: &output)
        append("user", entry.user, to: &output)
        append("tunnel", entry.tunnel, to: &output)
        append("authority", entry.authority, to: &output)
        appendOriginal(of: entry, to: &output)
        guard let version = entry.record.clientTLS else { return }
        append("client_tls", version.label, to: &output)
        append("client_cipher", to: &output) { JSONText.append(entry.cipherSuite, to: &$0) }
        append("client_subject", entry.subject, to: &output)
    }

    /// Appends the server's address, or the path of its socket, unless there is none.
    func appendUpstream(of entry: FlowQueue.Entry, to output: inout LineBuffer) {
        guard let address = entry.record.upstreamAddress else { return }
        append("upstream", to: &output) { output in
            if address == .unnamed {
                output.append("unix:")
                JSONText.append(entry.way, to: &output)
            } else {
                let upstream = Endpoint(address: address, port: entry.record.upstreamPort)
                upstream.text.withUnsafeBytes { output.append($0) }
            }
        }
    }

    /// Appends the address that the client connected to, unless it is one of the host's.
    func appendOriginal(of entry: FlowQueue.Entry, to output: inout LineBuffer) {
        guard let address = entry.record.originalAddress else { return }
        append("original", to: &output) { output in
            let original = Endpoint(address: address, port: entry.record.originalPort)
            original.text.withUnsafeBytes { output.append($0) }
        }
    }

    /// Appends a member of the object whose value is a string.
    @inline(__always)
    func append(
        _ key: StaticString, to output: inout LineBuffer, value: (inout LineBuffer) -> Void
    ) {
        output.append(",\"")
        output.append(key)
        output.append("\":\"")
        value(&output)
        output.append("\"")
    }

    /// The same for a word, unless there is none.
    func append(_ key: StaticString, _ word: StaticString?, to output: inout LineBuffer) {
        guard let word else { return }
        append(key, to: &output) { $0.append(word) }
    }

    /// The same for arbitrary bytes, unless there are none.
    func append(
        _ key: StaticString, _ text: UnsafeRawBufferPointer, to output: inout LineBuffer
    ) {
        if text.isEmpty { return }
        append(key, to: &output) { JSONText.append(text, to: &$0) }
    }

    func append(
        label index: Int, of labels: [[UInt8]], to output: inout LineBuffer
    ) {
        if labels.indices.contains(index) {
            output.append(labels[index])
        } else {
            output.append("other")
        }
    }

    // MARK: Apache's combined format

    /// `%h - %u %t "%r" %>s %b "%{Referer}i" "%{User-Agent}i"`, then the exchange's id, its
    /// reason or `-`, and what else is known of it, each with its name. The target of a request in
    /// an intercepted tunnel, or at a transparent listener, is written as a complete URL.
    private mutating func appendCombined(
        _ entry: FlowQueue.Entry, to output: inout LineBuffer
    ) {
        let record = entry.record
        record.clientAddress.clientText.withUnsafeBytes { output.append($0) }
        output.append(" - ")
        if entry.user.isEmpty { output.append("-") }
        ApacheText.append(entry.user, to: &output)
        output.append(" [")
        clock.appendCommonLog(record.timeMilliseconds, to: &output)
        output.append("] \"")
        if entry.method.isEmpty && entry.target.isEmpty {
            output.append("-")
        } else {
            ApacheText.append(entry.method, to: &output)
            output.append(" ")
            appendTunnel(of: entry, to: &output)
            Userinfo.redacting(entry.target) { ApacheText.append($0, to: &output) }
            if record.version != nil {
                output.append(" ")
                output.append(record.protocolLabel)
            }
        }
        output.append("\" ")
        append(orDash: UInt64(record.counted.status), to: &output)
        output.append(" ")
        append(orDash: record.counted.responseBytes, to: &output)
        output.append(" \"")
        if entry.referer.isEmpty { output.append("-") }
        Userinfo.redacting(entry.referer) { ApacheText.append($0, to: &output) }
        output.append("\" \"")
        if entry.userAgent.isEmpty { output.append("-") }
        ApacheText.append(entry.userAgent, to: &output)
        output.append("\" ")
        output.append(hexadecimal: record.exchange)
        output.append(" ")
        if let reason = record.counted.failure {
            append(label: reason, of: reasons, to: &output)
        } else {
            output.append("-")
        }
        appendNamed(entry, to: &output)
    }

    /// What Apache's format has no place for, as in JSON.
    private func appendNamed(_ entry: FlowQueue.Entry, to output: inout LineBuffer) {
        let record = entry.record
        for phase in Phase.allCases {
            guard let microseconds = record.phases[phase] else { continue }
            output.append(" ")
            output.append(phase.label)
            output.append("_us=")
            output.append(decimal: microseconds)
        }
        if record.upstreamAddress == .unnamed {
            appendNamed("upstream=\"unix:", entry.way, to: &output)
        } else if let address = record.upstreamAddress {
            output.append(" upstream=")
            let upstream = Endpoint(address: address, port: record.upstreamPort)
            upstream.text.withUnsafeBytes { output.append($0) }
        }
        if let isReused = record.isReused {
            output.append(isReused ? " reused=true" : " reused=false")
        }
        if let trace = record.trace {
            output.append(" trace=")
            output.append(trace.id)
        }
        if !entry.rule.isEmpty { appendNamed("rule=\"", entry.rule, to: &output) }
        if record.sampleMillionths > 0 {
            output.append(" sample=")
            output.append(share: record.sampleMillionths)
        }
        // Where the target does not say it.
        if !entry.tunnel.isEmpty, entry.target.first != UInt8(ascii: "/") {
            appendNamed("tunnel=\"", entry.tunnel, to: &output)
        }
    }

    private func appendNamed(
        _ start: StaticString, _ text: UnsafeRawBufferPointer, to output: inout LineBuffer
    ) {
        output.append(" ")
        output.append(start)
        ApacheText.append(text, to: &output)
        output.append("\"")
    }

    /// Only the CONNECT of an intercepted tunnel names the host of the requests in it: their own
    /// targets are paths. So are those of requests at a transparent listener.
    private func appendTunnel(of entry: FlowQueue.Entry, to output: inout LineBuffer) {
        guard entry.target.first == UInt8(ascii: "/") else { return }
        if !entry.tunnel.isEmpty {
            output.append("https://")
            ApacheText.append(entry.tunnel, to: &output)
        } else if !entry.authority.isEmpty {
            output.append("http://")
            ApacheText.append(entry.authority, to: &output)
        }
    }

    private func append(orDash number: UInt64, to output: inout LineBuffer) {
        if number == 0 { output.append("-") } else { output.append(decimal: number) }
    }
}

extension TLSVersion {
    /// The name in the access log and the API.
    var label: StaticString {
        switch self {
        case .tls10: "TLSv1.0"
        case .tls11: "TLSv1.1"
        case .tls12: "TLSv1.2"
        case .tls13: "TLSv1.3"
        }
    }
}

extension LineBuffer {
    /// Appends a share as a number: 0.01 for 10000 millionths.
    mutating func append(share millionths: UInt32) {
        guard millionths < UInt32(AccessLogSampling.whole) else { return append("1") }
        append("0.")
        var rest = millionths
        var unit = UInt32(AccessLogSampling.whole) / 10
        repeat {
            append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest / unit))
            rest %= unit
            unit /= 10
        } while rest > 0
    }

    /// Appends the number of a trace.
    mutating func append(_ trace: TraceID) {
        append(hexadecimal: trace.high)
        append(hexadecimal: trace.low)
    }
}
