import HTTPCore
import PinfoldConfiguration
import PinfoldMetrics

/// A field that lines tell, ready to be written.
struct ChosenField: Sendable {
    enum Source {
        case known(AccessLogField.Known)
        case head(HeadFields.Head)
    }

    let source: Source
    /// The name of a field of a head, in lower case.
    let name: [UInt8]
    /// What precedes its value: `,"request.accept":"`.
    let start: [UInt8]

    init(_ field: AccessLogField) {
        switch field {
        case .known(let known): (source, name) = (.known(known), [])
        case .request(let name): (source, self.name) = (.head(.request), Array(name.utf8))
        case .response(let name): (source, self.name) = (.head(.response), Array(name.utf8))
        }
        start = Array(",\(JSONText.quoted(field.name)):\"".utf8)
    }
}

// Lines that tell only what was chosen, in that order. The members are those of other lines.
extension AccessLogFormatter {
    mutating func appendChosen(
        _ fields: [ChosenField], of entry: FlowQueue.Entry, to output: inout LineBuffer
    ) {
        for field in fields {
            switch field.source {
            case .known(let known): append(known, of: entry, to: &output)
            case .head(let head): append(field, of: head, in: entry, to: &output)
            }
        }
        // Each begins with a comma. None may be there at all.
        if output.isAtLineStart {
            output.append("{")
        } else {
            output.beginLine(with: UInt8(ascii: "{"))
        }
        output.append("}")
    }

    private func append(
        _ field: ChosenField, of head: HeadFields.Head, in entry: FlowQueue.Entry,
        to output: inout LineBuffer
    ) {
        guard let value = HeadFields.value(of: field.name, in: head, among: entry.fields) else {
            return
        }
        output.append(field.start)
        JSONText.append(value, to: &output)
        output.append("\"")
    }

    private mutating func append(
        _ field: AccessLogField.Known, of entry: FlowQueue.Entry, to output: inout LineBuffer
    ) {
        switch field {
        case .time:
            output.append(",\"time\":\"")
            clock.appendRFC3339(entry.record.timeMilliseconds, to: &output)
            output.append("\"")
        case .id, .client, .listener, .host, .method, .target, .version, .cache:
            appendText(field, of: entry, to: &output)
        case .status:
            output.append(",\"status\":")
            appendStatus(of: entry, to: &output)
        case .duration:
            append("duration_us", number: entry.record.counted.durationMicroseconds, to: &output)
        case .queue: append(phase: .queue, of: entry, to: &output)
        case .dns: append(phase: .dns, of: entry, to: &output)
        case .connect: append(phase: .connect, of: entry, to: &output)
        case .tls: append(phase: .tls, of: entry, to: &output)
        case .firstByte: append(phase: .firstByte, of: entry, to: &output)
        case .body: append(phase: .body, of: entry, to: &output)
        case .requestBytes:
            append("request_bytes", number: entry.record.counted.requestBytes, to: &output)
        case .responseBytes:
            append("response_bytes", number: entry.record.counted.responseBytes, to: &output)
        case .sample:
            guard entry.record.sampleMillionths > 0 else { return }
            output.append(",\"sample\":")
            output.append(share: entry.record.sampleMillionths)
        default: appendOptional(field, of: entry, to: &output)
        }
    }

    /// Appends what every line can tell, as text.
    private func appendText(
        _ field: AccessLogField.Known, of entry: FlowQueue.Entry, to output: inout LineBuffer
    ) {
        let (record, counted) = (entry.record, entry.record.counted)
        switch field {
        case .id: append("id", to: &output) { $0.append(hexadecimal: record.exchange) }
        case .client:
            append("client", to: &output) { output in
                let client = Endpoint(address: record.clientAddress, port: record.clientPort)
                client.clientText.withUnsafeBytes { output.append($0) }
            }
        case .listener:
            append("listener", to: &output) { listeners.append(counted.route.listener, to: &$0) }
        case .host: append("host", to: &output) { hosts.append(counted.route.host, to: &$0) }
        case .method: append("method", to: &output) { JSONText.append(entry.method, to: &$0) }
        case .target:
            append("target", to: &output) { output in
                Userinfo.redacting(entry.target) { JSONText.append($0, to: &output) }
            }
        case .version: append("version", to: &output) { $0.append(record.protocolLabel) }
        default: append("cache", to: &output) { $0.append(counted.cache.label) }
        }
    }

    /// Appends what most lines do not tell.
    private func appendOptional(
        _ field: AccessLogField.Known, of entry: FlowQueue.Entry, to output: inout LineBuffer
    ) {
        let record = entry.record
        switch field {
        case .forwarded: append("forwarded", record.forwarded?.token, to: &output)
        case .notStored: append("not_stored", record.notStored?.token, to: &output)
        case .trace:
            guard let trace = record.trace else { return }
            append("trace", to: &output) { $0.append(trace.id) }
        case .parent:
            if record.upstreamAddress != .unnamed { append("parent", entry.way, to: &output) }
        case .upstream: appendUpstream(of: entry, to: &output)
        case .reused:
            guard let isReused = record.isReused else { return }
            output.append(isReused ? ",\"reused\":true" : ",\"reused\":false")
        case .upstreamVersion:
            append("upstream_version", record.upstreamVersion?.text, to: &output)
        case .upstreamTLS: append("upstream_tls", record.upstreamTLS?.label, to: &output)
        case .reason:
            guard let reason = record.counted.failure else { return }
            append("reason", to: &output) { append(label: reason, of: reasons, to: &$0) }
        case .rule: append("rule", entry.rule, to: &output)
        case .reported: append("reported", entry.reported, to: &output)
        case .userAgent: append("user_agent", entry.userAgent, to: &output)
        case .referer:
            if entry.referer.isEmpty { return }
            append("referer", to: &output) { output in
                Userinfo.redacting(entry.referer) { JSONText.append($0, to: &output) }
            }
        default: appendOfClient(field, of: entry, to: &output)
        }
    }

    /// Appends what is known of the client and of its tunnel.
    private func appendOfClient(
        _ field: AccessLogField.Known, of entry: FlowQueue.Entry, to output: inout LineBuffer
    ) {
        let record = entry.record
        switch field {
        case .intercepted:
            if record.isIntercepted { output.append(",\"intercepted\":true") }
        case .passed: append("passed", record.interceptionPass?.label, to: &output)
        case .inspected: append("inspected", record.inspection?.label, to: &output)
        case .changed: append("changed", entry.steps, to: &output)
        case .user: append("user", entry.user, to: &output)
        case .tunnel: append("tunnel", entry.tunnel, to: &output)
        case .authority: append("authority", entry.authority, to: &output)
        case .original: appendOriginal(of: entry, to: &output)
        case .clientTLS: append("client_tls", record.clientTLS?.label, to: &output)
        case .clientCipher:
            if record.clientTLS == nil { return }
            append("client_cipher", to: &output) { JSONText.append(entry.cipherSuite, to: &$0) }
        default:
            if record.clientTLS == nil { return }
            append("client_subject", entry.subject, to: &output)
        }
    }

    private func append(
        phase: Phase, of entry: FlowQueue.Entry, to output: inout LineBuffer
    ) {
        guard let microseconds = entry.record.phases[phase] else { return }
        output.append(",\"")
        output.append(phase.label)
        output.append("_us\":")
        output.append(decimal: microseconds)
    }

    private func append(_ key: StaticString, number: UInt64, to output: inout LineBuffer) {
        output.append(",\"")
        output.append(key)
        output.append("\":")
        output.append(decimal: number)
    }
}
