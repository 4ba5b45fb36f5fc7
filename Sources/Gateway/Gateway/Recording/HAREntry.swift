import Documents
import HTTPCore
import PinfoldEngine
import PinfoldMetrics

/// An exchange as an entry of an HTTP Archive (HAR 1.2), which developer tools of browsers and
/// other proxies read: http://www.softwareishard.com/blog/har-12-spec/
///
/// What HAR has no member for is in members that begin with `_`, as it says: everything that the
/// API shows of an exchange, under the names that it has there. Pure.
struct HAREntry: Sendable {
    private let recorded: RecordedFlow
    private let view: FlowView
    private let options: RecordingOptions
    private let request: MaskedHead?
    private let response: MaskedHead?

    /// What the members of HAR itself say of an exchange.
    private static let named: Set<String> = [
        "sequence", "begin", "method", "scheme", "host", "path", "status", "phases",
        "requestBytes", "responseBytes", "version",
    ]

    init(_ recorded: RecordedFlow, _ names: FlowNames, _ options: RecordingOptions) {
        self.recorded = recorded
        self.options = options
        let flow = recorded.flow
        view = FlowView(flow, names, isFull: options.isFull)
        func head(_ bytes: ArraySlice<UInt8>, isCut: Bool) -> MaskedHead? {
            options.isFull && !bytes.isEmpty
                ? MaskedHead(bytes, isCut: isCut, showsSecrets: options.hasSecrets) : nil
        }
        request = head(flow.head, isCut: flow.isHeadCut)
        response = head(flow.responseHead, isCut: flow.isResponseHeadCut)
    }

    var json: DocumentValue {
        let timings = HARTimings(view.record.phases)
        var entry: DocumentDictionary = [
            "startedDateTime": .string(HARText.time(milliseconds: view.record.timeMilliseconds)),
            "time": HARText.number(timings.total), "request": requestValue,
            "response": responseValue, "cache": .dictionary([:]), "timings": timings.json,
        ]
        if let address = view.record.upstreamAddress, address != .unnamed, options.isFull {
            entry["serverIPAddress"] = .string("\(address.unmapped)")
        }
        if case .dictionary(let shown) = FlowView.shape.json(view) {
            for member in shown.members where !Self.named.contains(member.key) {
                entry["_" + member.key] = member.value
            }
        }
        let host = view.target.host
        if !host.isEmpty, !HARHost.isReadable(host) { entry["_host"] = .string(host) }
        if let detail = view.full(view.flow.detail) { entry["_detail"] = .string(detail) }
        return .dictionary(entry)
    }

    private static func count(_ bytes: UInt64) -> DocumentValue { .number(DocumentNumber(bytes)) }

    /// As browsers write it.
    private var version: DocumentValue {
        let text = "\(view.record.protocolLabel)"
        return .string(text.isEmpty ? "unknown" : text == "HTTP/2.0" ? "HTTP/2" : text)
    }

    // MARK: Messages

    private var requestValue: DocumentValue {
        let url = HARURL(view.target, showsQuery: options.isFull)
        let method = view.flow.methodText
        var value: DocumentDictionary = [
            "method": .string(method.isEmpty ? "UNKNOWN" : method), "url": .string(url.text),
            "httpVersion": version, "cookies": .array(HARFields.cookies(of: request)),
            "headers": .array(HARFields.headers(request)), "queryString": .array(url.query),
            "headersSize": Self.size(view.flow.head, isCut: view.flow.isHeadCut, request),
            "bodySize": Self.count(view.counted.requestBytes),
        ]
        if view.counted.requestBytes > 0, isKept(recorded.request, view.counted.requestBytes) {
            let content = HARContent(
                recorded.request, of: request, atMost: options.bodyBytes)
            value["postData"] = content.posted
        }
        return .dictionary(value)
    }

    /// Whether the content of a message is there. What a tunnel or a WebSocket carries is counted,
    /// but is no content.
    private func isKept(_ content: KeptContent, _ sentBytes: UInt64) -> Bool {
        options.bodyBytes > 0 && recorded.hasContents
            && (sentBytes == 0 || !content.bytes.isEmpty || content.isCut)
    }

    private var responseValue: DocumentValue {
        let start = response?.start?.split(
            separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
        let sent = view.counted.responseBytes
        return .dictionary([
            "status": .number(DocumentNumber(view.counted.status)),
            "statusText": .string(start.flatMap { $0.count > 2 ? String($0[2]) : nil } ?? ""),
            "httpVersion": version, "cookies": .array(HARFields.cookies(ofResponse: response)),
            "headers": .array(HARFields.headers(response)),
            "content": isKept(recorded.response, sent)
                ? HARContent(recorded.response, of: response, atMost: options.bodyBytes)
                    .content(sentBytes: sent)
                : HARContent.omitted(of: response, bytes: sent),
            "redirectURL": .string(response?.value("location") ?? ""),
            "headersSize": Self.size(
                view.flow.responseHead, isCut: view.flow.isResponseHeadCut, response),
            "bodySize": Self.count(sent),
        ])
    }

    /// -1 if it is not known.
    private static func size(
        _ head: ArraySlice<UInt8>, isCut: Bool, _ shown: MaskedHead?
    ) -> DocumentValue {
        .number(DocumentNumber(shown == nil || isCut ? -1 : head.count))
    }
}

/// The phases of an exchange as HAR divides them, in milliseconds. What did not happen is -1, where
/// that is allowed: `send`, `wait` and `receive` always happen. `connect` includes `ssl`.
struct HARTimings: Sendable {
    private let phases: PhaseTimes

    init(_ phases: PhaseTimes) { self.phases = phases }

    /// All of them together.
    var total: Double { Double(phases.sum) / 1000 }

    private func value(_ phase: Phase) -> Double? { phases[phase].map { Double($0) / 1000 } }

    private var connect: Double? {
        let parts = [value(.connect), value(.tls)].compactMap(\.self)
        return parts.isEmpty ? nil : parts.reduce(0, +)
    }

    var json: DocumentValue {
        .dictionary([
            "blocked": HARText.number(value(.queue) ?? -1),
            "dns": HARText.number(value(.dns) ?? -1),
            "connect": HARText.number(connect ?? -1), "ssl": HARText.number(value(.tls) ?? -1),
            "send": HARText.number(0), "wait": HARText.number(value(.firstByte) ?? 0),
            "receive": HARText.number(value(.body) ?? 0),
        ])
    }
}

/// The URL of a request, in a form that every reader accepts: one that it does not may make it
/// refuse the whole file.
struct HARURL: Sendable {
    /// In place of a host that is not known.
    static let unknownHost = "unknown.invalid"

    let text: String
    /// The parts of the query.
    let query: [DocumentValue]

    /// - Parameter showsQuery: otherwise it is `***`.
    init(_ target: FlowTarget, showsQuery: Bool) {
        let isHost = HARHost.isReadable(target.host)
        // A tunnel has no scheme. Nearly all are for TLS.
        let scheme = target.scheme ?? (isHost ? "https" : "http")
        let isURL = scheme == "http" || scheme == "https"
        let path = target.text(withQuery: showsQuery) ?? "/"
        let escaped = PercentCoding.encode(path.utf8) { $0 > 0x20 && $0 < 0x7F && $0 != 0x23 }
        text =
            (isURL ? scheme : "http") + "://" + (isHost ? target.host : Self.unknownHost)
            + (path.hasPrefix("/") ? "" : "/") + String(decoding: escaped, as: UTF8.self)
        guard showsQuery, let query = target.query else {
            self.query = []
            return
        }
        self.query = query.split(separator: "&").map { pair in
            let sides = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            return HARText.pair(
                Self.decoded(sides[0]), sides.count > 1 ? Self.decoded(sides[1]) : "")
        }
    }

    private static func decoded(_ text: Substring) -> String {
        let spaced = text.utf8.map { $0 == UInt8(ascii: "+") ? 0x20 : $0 }
        return String(decoding: PercentCoding.decodeEscapes(spaced), as: UTF8.self)
    }
}

/// The fields of a head as HAR has them.
enum HARFields {
    static func headers(_ head: MaskedHead?) -> [DocumentValue] {
        head?.fields.map { HARText.pair($0.name, $0.value) } ?? []
    }

    /// The cookies of a request; none if they are masked.
    static func cookies(of head: MaskedHead?) -> [DocumentValue] {
        shown("cookie", in: head).flatMap { $0.split(separator: ";").map(cookie) }
    }

    /// The cookies that a response sets, without their attributes, which are in its fields.
    static func cookies(ofResponse head: MaskedHead?) -> [DocumentValue] {
        shown("set-cookie", in: head).map { cookie($0.prefix { $0 != ";" }) }
    }

    private static func shown(_ name: String, in head: MaskedHead?) -> [String] {
        head?.fields.filter { !$0.isMasked && $0.name.lowercasedASCII == name }.map(\.value) ?? []
    }

    private static func cookie(_ text: Substring) -> DocumentValue {
        let text = text.drop { $0 == " " }
        let name = text.prefix { $0 != "=" }
        return HARText.pair(String(name), String(text.dropFirst(name.count + 1)))
    }
}

extension MaskedHead {
    /// The value of the first field of a name, in lower case; `nil` if there is none.
    func value(_ name: String) -> String? {
        fields.first { $0.name.lowercasedASCII == name }?.value
    }

    /// The values of all fields of a name, in lower case.
    func values(_ name: String) -> [String] {
        fields.filter { $0.name.lowercasedASCII == name }.map(\.value)
    }
}
