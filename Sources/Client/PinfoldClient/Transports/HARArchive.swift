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
        /// The token of the error, if the exchange failed.
        var failure: String?

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

    /// An entry of a file that has no place in ``HARArchive/entries``, and why.
    ///
    /// Browsers record what was no exchange of HTTP as well: pages' own data, WebSockets, requests
    /// that were blocked; and exchanges whose content they have dropped.
    public struct SkippedEntry: Sendable, Hashable, CustomStringConvertible {
        /// Why an entry is skipped.
        public enum Reason: Sendable, Hashable {
            /// A member is missing or not valid, for example `request.method`.
            case member(String)
            /// The URL is not one of `http` or `https`.
            case scheme
            /// There was no response, as for a request that was blocked or failed.
            case noResponse
            /// The response is an interim one, or the beginning of another protocol.
            case interim(status: Int)
            /// The file does not have the content, of which there were so many bytes.
            case contentLeftOut(bytes: Int64)
        }

        /// The number of the entry in `log.entries`, which counts from 0.
        public let index: Int
        /// The request's method and URL, as far as there are any.
        public let method, url: String?
        /// Why it is skipped.
        public let reason: Reason

        public var description: String {
            let name = url.map { url in
                let shown = ClientError.shown(url)
                let end = shown.count > 200 ? "…" : ""
                return " (\(method ?? "?") \(shown.prefix(200))\(end))"
            }
            return "log.entries[\(index)]\(name ?? "") \(reason.description)"
        }
    }

    /// The exchanges in their order.
    public var entries: [Entry]
    /// The entries of the file that are left out, in their order.
    public private(set) var skipped: [SkippedEntry] = []

    /// Creates an archive.
    public init(entries: [Entry] = []) { self.entries = entries }

    /// Reads an archive. Entries that cannot be used are left out (``skipped``).
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
            do throws(SkippedEntry.Reason) {
                entries.append(try Entry(value))
            } catch {
                skipped.append(SkippedEntry(index, value["request"], error))
            }
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

    public var description: String {
        switch self {
        case .document(let error): "the archive is not JSON: \(error)"
        case .noEntries: "the archive has no log.entries; expected an HTTP Archive (HAR 1.2)"
        }
    }
}

extension HARArchive.Entry {
    /// Creates an entry of an exchange of a session, without credentials and cookies.
    ///
    /// - Parameters:
    ///   - began: When the request was made, in milliseconds since 1970.
    ///   - sent: What was sent of the request's content.
    ///   - response: The response, or `nil` if there was none.
    ///   - content: Its content, as far as it was read.
    ///   - transaction: The times and sizes, if they are known.
    ///   - failure: Why there is no response, or not all of its content.
    package init(
        began: Int64, request: HTTPRequest, sent: [UInt8], response: HTTPResponse?,
        content: [UInt8], _ transaction: TaskMetrics.Transaction?, failure: ClientError?
    ) {
        // HAR has 0 for what did not come.
        var head = response ?? HTTPResponse(status: .init(code: 0))
        var request = request
        request.headerFields = request.headerFields.masked
        head.headerFields = head.headerFields.masked
        self.init(
            startedDateTime: HARText.time(milliseconds: began), request: request,
            requestContent: sent, response: head, content: content, time: transaction?.total)
        (timings, self.failure) = (transaction, failure?.token)
    }
}

// MARK: - Reading

extension HARArchive.SkippedEntry {
    fileprivate init(_ index: Int, _ request: DocumentValue?, _ reason: Reason) {
        func text(_ member: String) -> String? {
            if case .string(let text)? = request?[member] { text } else { nil }
        }
        (self.index, self.reason) = (index, reason)
        (method, url) = (text("method"), text("url"))
    }
}

extension HARArchive.SkippedEntry.Reason: Error, CustomStringConvertible {
    public var description: String {
        switch self {
        case .member(let member): "has no valid \(member)"
        case .scheme: "has no http or https URL"
        case .noResponse: "has no response: its response.status is 0"
        case .interim(let status): "has no final response: its response.status is \(status)"
        case .contentLeftOut(let bytes):
            "is without the response's content of \(bytes) bytes: it has no response.content.text"
        }
    }
}

extension HARArchive.Entry {
    private typealias Reason = HARArchive.SkippedEntry.Reason

    fileprivate init(_ value: DocumentValue) throws(HARArchive.SkippedEntry.Reason) {
        func text(_ value: DocumentValue?, _ member: String) throws(Reason) -> String {
            guard case .string(let text)? = value else { throw .member(member) }
            return text
        }
        let request = try Self.request(
            try text(value["request"]?["method"], "request.method"),
            try text(value["request"]?["url"], "request.url"),
            Self.fields(value["request"]?["headers"]))
        guard case .number(let number)? = value["response"]?["status"],
            let status = number.integer, status == 0 || (100...999).contains(status)
        else { throw .member("response.status") }
        guard status != 0 else { throw .noResponse }
        guard status >= 200 else { throw .interim(status: Int(status)) }
        let phrase = (try? text(value["response"]?["statusText"], "")) ?? ""
        var fields = Self.fields(value["response"]?["headers"])
        for name in [HTTPField.Name.contentEncoding, .contentLength, .transferEncoding] {
            fields[name] = nil
        }
        let head = HTTPResponse(
            status: .init(code: Int(status), reasonPhrase: phrase), headerFields: fields)
        let content = value["response"]?["content"]
        guard let bytes = Self.content(content?["text"], content?["encoding"]) else {
            throw .member("response.content")
        }
        if bytes.isEmpty, let size = Self.missingBytes(content, of: request.method, head.status) {
            throw .contentLeftOut(bytes: size)
        }
        let posted = value["request"]?["postData"]
        guard
            let sent = Self.content(posted?["text"], posted?["_encoding"] ?? posted?["encoding"])
        else { throw .member("request.postData") }
        var took: Duration?
        if case .number(let time)? = value["time"], time.double >= 0, time.double < 1e12 {
            took = .microseconds(Int64((time.double * 1000).rounded()))
        }
        self.init(
            startedDateTime: (try? text(value["startedDateTime"], "")) ?? "",
            request: request, requestContent: sent, response: head, content: bytes, time: took)
    }

    private static func request(
        _ method: String, _ url: String, _ fields: HTTPFields
    ) throws(Reason) -> HTTPRequest {
        guard let method = HTTPRequest.Method(rawValue: method) else {
            throw .member("request.method")
        }
        if let request = try? HTTPRequest(method, url, fields: fields) { return request }
        guard let scheme = URIReference(encoding: url)?.scheme else { throw .member("request.url") }
        throw ["http", "https"].contains(scheme) ? .member("request.url") : .scheme
    }

    /// How much content there was, if the file has none of it. What has no content by its method or
    /// status may have a size there, and what redirects is not read.
    private static func missingBytes(
        _ content: DocumentValue?, of method: HTTPRequest.Method, _ status: HTTPResponse.Status
    ) -> Int64? {
        guard content?["text"] == nil || content?["text"] == .null, method != .head,
            status.code != 204, status.kind != .redirection,
            case .number(let size)? = content?["size"], let bytes = size.integer, bytes > 0
        else { return nil }
        return Int64(bytes)
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
        var value: DocumentDictionary = [
            "status": Self.count(response.status.code),
            "statusText": .string(response.status.reasonPhrase), "httpVersion": version,
            "cookies": .array([]), "headers": Self.headers(response.headerFields),
            "content": Self.value(
                of: content, response.headerFields, encoding: "encoding", size: content.count),
            "redirectURL": .string((try? response.headerFields.single(.location)) ?? ""),
            "headersSize": Self.count(-1),
            "bodySize": .number(
                DocumentNumber(timings?.receivedBytes ?? Int64(content.count))),
        ]
        // As browsers write it.
        if let failure { value["_error"] = .string(failure) }
        return .dictionary(value)
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
