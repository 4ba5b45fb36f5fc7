import Clocks
import Documents
import HTTPCore
public import HTTPTypes

/// Exchanges in an HTTP Archive (HAR 1.2), which browsers' developer tools and `pinfold record`
/// write as well.
public struct HARArchive: Sendable {
    /// A request and its response.
    public struct Entry: Sendable {
        /// When the request was made, as in the file (ISO 8601).
        public var startedDateTime: String
        /// The request.
        public var request: HTTPRequest
        /// Its content.
        public var requestContent: [UInt8]
        /// The response. Its content is in ``content`` without content codings, so that there are
        /// no fields for these and for the length.
        public var response: HTTPResponse
        /// The response's content.
        public var content: [UInt8]
        /// How long the exchange took, or `nil` if it is not known.
        public var time: Duration?
        /// The parts of ``time``, as HAR has them.
        var timings: TaskMetrics.Transaction?

        /// Creates an entry; see the properties.
        public init(
            startedDateTime: String = "1970-01-01T00:00:00.000Z", request: HTTPRequest,
            requestContent: [UInt8] = [], response: HTTPResponse, content: [UInt8] = [],
            time: Duration? = nil
        ) {
            self.startedDateTime = startedDateTime
            (self.request, self.requestContent) = (request, requestContent)
            (self.response, self.content, self.time) = (response, content, time)
        }
    }

    /// The exchanges in their order.
    public var entries: [Entry]

    /// Creates an archive.
    public init(entries: [Entry] = []) { self.entries = entries }

    /// Reads an archive.
    ///
    /// - Parameters:
    ///   - bytes: The content of the file.
    ///   - maximumBytes: The maximum size of the file.
    /// - Throws: ``HARError``.
    public init(_ bytes: [UInt8], maximumBytes: Int = 256 << 20) throws(HARError) {
        let document: DocumentValue
        do throws(DocumentError) {
            document = try JSONDocument.value(
                of: bytes, limits: DocumentLimits(bytes: maximumBytes, values: 16 << 20))
        } catch {
            throw .document(error)
        }
        guard case .array(let values)? = document["log"]?["entries"] else { throw .noEntries }
        entries = []
        entries.reserveCapacity(values.count)
        for (index, value) in values.enumerated() {
            entries.append(try Entry(value, index))
        }
    }

    /// The archive as a file.
    public var bytes: [UInt8] {
        var text = HARLog.beginning(version: "1")
        for (index, entry) in entries.enumerated() {
            text += HARLog.separator(isFirst: index == 0) + entry.json.description
        }
        return Array((text + HARLog.ending()).utf8)
    }
}

/// What is wrong with an HTTP Archive.
public enum HARError: Error, Sendable, CustomStringConvertible {
    /// It is not JSON.
    case document(DocumentError)
    /// It has no `log` with `entries`.
    case noEntries
    /// The member of an entry, which counts from 0, is missing or not valid.
    case entry(Int, member: String)

    public var description: String {
        switch self {
        case .document(let error): "the archive is not JSON: \(error)"
        case .noEntries: "the archive has no log.entries; expected an HTTP Archive (HAR 1.2)"
        case .entry(let index, let member):
            "the archive's log.entries[\(index)] has no valid \(member)"
        }
    }
}

extension HARArchive.Entry {
    /// Creates an entry of a response that a session got, without credentials and cookies.
    ///
    /// - Parameter content: What was sent; it is in the entry if it was in memory.
    package init(_ response: DataResponse, sent content: RequestContent?) {
        let took = response.metrics.transactions.last?.total ?? .zero
        let began = Clock.wallMilliseconds() - took.wholeMilliseconds
        var (request, head) = (response.request, response.head)
        request.headerFields = request.headerFields.masked
        head.headerFields = head.headerFields.masked
        var sent: [UInt8] = []
        if case .bytes(let bytes)? = content?.source { sent = bytes }
        self.init(
            startedDateTime: HARText.time(milliseconds: began), request: request,
            requestContent: sent, response: head, content: response.content, time: took)
        timings = response.metrics.transactions.last
    }
}

// MARK: - Reading

extension HARArchive.Entry {
    fileprivate init(_ value: DocumentValue, _ index: Int) throws(HARError) {
        func text(_ value: DocumentValue?, _ member: String) throws(HARError) -> String {
            guard case .string(let text)? = value else {
                throw .entry(index, member: member)
            }
            return text
        }
        let method = try text(value["request"]?["method"], "request.method")
        let url = try text(value["request"]?["url"], "request.url")
        guard let method = HTTPRequest.Method(rawValue: method),
            let request = try? HTTPRequest(
                method, url, fields: Self.fields(value["request"]?["headers"]))
        else { throw .entry(index, member: "request.url") }
        guard case .number(let number)? = value["response"]?["status"],
            let status = number.integer, (100...999).contains(status)
        else { throw .entry(index, member: "response.status") }
        let phrase = (try? text(value["response"]?["statusText"], "")) ?? ""
        var fields = Self.fields(value["response"]?["headers"])
        for name in [HTTPField.Name.contentEncoding, .contentLength, .transferEncoding] {
            fields[name] = nil
        }
        let content = value["response"]?["content"]
        guard let bytes = Self.content(content?["text"], content?["encoding"]) else {
            throw .entry(index, member: "response.content")
        }
        let posted = value["request"]?["postData"]
        guard
            let sent = Self.content(posted?["text"], posted?["_encoding"] ?? posted?["encoding"])
        else { throw .entry(index, member: "request.postData") }
        var took: Duration?
        if case .number(let time)? = value["time"], time.double >= 0, time.double < 1e12 {
            took = .microseconds(Int64(time.double * 1000))
        }
        self.init(
            startedDateTime: (try? text(value["startedDateTime"], "")) ?? "",
            request: request, requestContent: sent,
            response: HTTPResponse(
                status: .init(code: Int(status), reasonPhrase: phrase), headerFields: fields),
            content: bytes, time: took)
    }

    /// Fields that are not valid, such as the pseudo-header fields that browsers write, are left
    /// out.
    private static func fields(_ value: DocumentValue?) -> HTTPFields {
        guard case .array(let values)? = value else { return [:] }
        var fields = HTTPFields()
        for value in values {
            guard case .string(let text)? = value["name"], let name = HTTPField.Name(text),
                case .string(let value)? = value["value"], HTTPField.isValidValue(value)
            else { continue }
            fields.append(HTTPField(name: name, value: value))
        }
        return fields
    }

    /// Returns `nil` if the content is not valid.
    private static func content(_ text: DocumentValue?, _ encoding: DocumentValue?) -> [UInt8]? {
        guard case .string(let text)? = text else { return [] }
        guard encoding == .string("base64") else { return Array(text.utf8) }
        return Base64.decode(text.utf8)
    }
}

// MARK: - Writing

extension HARArchive.Entry {
    /// The entry as a member of `log.entries`.
    package var json: DocumentValue {
        let milliseconds = time.map { $0 / .microseconds(1) / 1000 }
        return .dictionary([
            "startedDateTime": .string(startedDateTime),
            "time": HARText.number(milliseconds ?? 0),
            "request": requestValue, "response": responseValue, "cache": .dictionary([:]),
            "timings": timingsValue(milliseconds ?? 0),
        ])
    }

    private static func count(_ count: Int) -> DocumentValue { .number(DocumentNumber(count)) }

    private static func headers(_ fields: HTTPFields) -> DocumentValue {
        .array(fields.map { HARText.pair($0.name.rawName, $0.value) })
    }

    private var version: DocumentValue {
        .string(timings?.protocolName == "h2" ? "HTTP/2" : "HTTP/1.1")
    }

    private var requestValue: DocumentValue {
        let query = request.path?.split(separator: "?", maxSplits: 1).dropFirst().first ?? ""
        var value: DocumentDictionary = [
            "method": .string(request.method.rawValue), "url": .string(request.url),
            "httpVersion": version, "cookies": .array([]),
            "headers": Self.headers(request.headerFields),
            "queryString": .array(
                query.split(separator: "&").map { pair in
                    let sides = pair.split(
                        separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                    return HARText.pair(
                        Self.decoded(sides[0]), sides.count > 1 ? Self.decoded(sides[1]) : "")
                }), "headersSize": Self.count(-1),
            "bodySize": Self.count(requestContent.count),
        ]
        if !requestContent.isEmpty {
            value["postData"] = Self.value(
                of: requestContent, request.headerFields, encoding: "_encoding")
        }
        return .dictionary(value)
    }

    private static func decoded(_ text: Substring) -> String {
        let spaced = text.utf8.map { $0 == UInt8(ascii: "+") ? 0x20 : $0 }
        return String(decoding: PercentCoding.decodeEscapes(spaced), as: UTF8.self)
    }

    private static func value(
        of bytes: [UInt8], _ fields: HTTPFields, encoding: String, size: Int? = nil
    ) -> DocumentValue {
        let type = (try? fields.single(.contentType)) ?? ""
        var value = DocumentDictionary()
        if let size { value["size"] = count(size) }
        value["mimeType"] = .string(type)
        if let text = HARText.text(of: bytes, type: type) {
            value["text"] = .string(text)
        } else {
            value["text"] = .string(Base64.encode(bytes))
            value[encoding] = .string("base64")
        }
        return .dictionary(value)
    }

    private var responseValue: DocumentValue {
        .dictionary([
            "status": Self.count(response.status.code),
            "statusText": .string(response.status.reasonPhrase), "httpVersion": version,
            "cookies": .array([]), "headers": Self.headers(response.headerFields),
            "content": Self.value(
                of: content, response.headerFields, encoding: "encoding", size: content.count),
            "redirectURL": .string((try? response.headerFields.single(.location)) ?? ""),
            "headersSize": Self.count(-1), "bodySize": Self.count(content.count),
        ])
    }

    private func timingsValue(_ total: Double) -> DocumentValue {
        func milliseconds(_ duration: Duration?) -> Double? {
            duration.map { $0 / .microseconds(1) / 1000 }
        }
        guard let timings else {
            return .dictionary([
                "send": Self.count(0), "wait": HARText.number(total), "receive": Self.count(0),
            ])
        }
        let (connect, tls) = (milliseconds(timings.connect), milliseconds(timings.handshake))
        let before = [timings.lookup, timings.connect, timings.tunnel, timings.handshake]
            .compactMap { milliseconds($0) }.reduce(0, +)
        let firstByte = milliseconds(timings.firstByte) ?? 0
        let queued = milliseconds(timings.queued) ?? 0
        return .dictionary([
            "blocked": HARText.number(queued),
            "dns": HARText.number(milliseconds(timings.lookup) ?? -1),
            "connect": HARText.number(
                connect.map { $0 + (milliseconds(timings.tunnel) ?? 0) + (tls ?? 0) } ?? -1),
            "ssl": HARText.number(tls ?? -1), "send": Self.count(0),
            "wait": HARText.number(max(0, firstByte - before)),
            "receive": HARText.number(max(0, total - queued - firstByte)),
        ])
    }
}
