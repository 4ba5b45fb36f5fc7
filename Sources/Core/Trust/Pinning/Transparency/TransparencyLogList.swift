import HTTPCore

/// Why a file is not a list of logs.
package struct LogListError: Error, Hashable, Sendable {
    /// The location: `line 3, byte 14`, or a member such as `operators[0].logs[2].key`; empty for
    /// the whole file.
    package var location: String
    package var text: String
}

/// A list of logs in the format that Google and Apple publish (`log_list.json`, version 3). Members
/// that do not affect which timestamps are valid (URLs, mail addresses, the maximum merge delay)
/// are ignored.
package struct TransparencyLogList: Hashable, Sendable {
    /// The maximum number of logs in a list.
    package static let maximumLogs = 10_000
    /// The maximum number of characters that are kept of a log's name.
    private static let nameCharacters = 64

    /// When the list was created, in seconds since 1970; `nil` if it does not contain that.
    package let timestamp: Int64?
    package let logs: [TransparencyLog]

    /// Creates a list of these logs.
    package init(timestamp: Int64?, logs: [TransparencyLog]) {
        self.timestamp = timestamp
        self.logs = logs
    }

    /// Reads a list.
    ///
    /// - Parameters:
    ///   - digest: computes the SHA-256 of bytes; `nil` only if that fails.
    ///   - isKnownKey: whether a SubjectPublicKeyInfo in DER is a key that logs may use (RFC 6962
    /// §2.1.4). A log with any other key is in the list, but does not count.
    package init(
        json bytes: [UInt8], digest: ([UInt8]) -> SHA256Digest?, isKnownKey: ([UInt8]) -> Bool
    ) throws(LogListError) {
        let root: JSONValue
        do throws(JSONSyntaxError) {
            root = try JSONReader.read(bytes[...])
        } catch {
            let before = bytes.prefix(error.position - 1)
            let newline = UInt8(ascii: "\n")
            let line = before.count { $0 == newline } + 1
            let start = before.lastIndex(of: newline).map { $0 + 1 } ?? 0
            throw LogListError(
                location: "line \(line), byte \(error.position - start)", text: error.text)
        }
        let list = try Member(location: "", value: root).object()
        timestamp = try list.optional("log_list_timestamp")?.time()
        var found: [TransparencyLog] = []
        var known: [SHA256Digest: String] = [:]
        for operation in try list.required("operators").elements() {
            let operation = try operation.object()
            // Timestamps of logs that are read as tiles have the same format.
            for name in ["logs", "tiled_logs"] {
                guard let logs = operation.optional(name) else { continue }
                for element in try logs.elements() {
                    let log = try Self.log(try element.object(), digest, isKnownKey)
                    if let other = known.updateValue(element.location, forKey: log.id) {
                        throw element.error("the same log as \(other)")
                    }
                    guard found.count < Self.maximumLogs else {
                        throw element.error("more than \(Self.maximumLogs) logs")
                    }
                    found.append(log)
                }
            }
        }
        guard !found.isEmpty else {
            throw LogListError(location: "operators", text: "the list contains no log")
        }
        logs = found
    }

    private static func log(
        _ member: Member, _ digest: ([UInt8]) -> SHA256Digest?, _ isKnownKey: ([UInt8]) -> Bool
    ) throws(LogListError) -> TransparencyLog {
        let key = try member.required("key").base64()
        let id = try member.required("log_id")
        guard let digest = digest(key), try id.base64() == digest.bytes else {
            throw id.error("not the SHA-256 of the log's key")
        }
        var name = ""
        for title in ["description", "url"] where name.isEmpty {
            name = try member.optional(title)?.text() ?? ""
        }
        var log = TransparencyLog(
            name: name.isEmpty ? Base64.encode(digest.bytes) : shown(name), id: digest, key: key,
            hasKnownKey: isKnownKey(key), state: nil)
        if let state = member.optional("state") {
            (log.state, log.stateSince) = try Self.state(state)
        }
        if let interval = member.optional("temporal_interval") {
            let interval = try interval.object()
            let start = try interval.required("start_inclusive").time()
            let end = try interval.required("end_exclusive").time()
            guard start < end else { throw interval.error("it ends before it starts") }
            log.expiries = start..<end
        }
        return log
    }

    private static func state(
        _ member: Member
    ) throws(LogListError) -> (TransparencyLog.State, Int64) {
        guard case .object(let states) = member.value, states.count == 1, let one = states.first,
            let state = TransparencyLog.State(rawValue: one.name)
        else {
            let words = TransparencyLog.State.allCases.map(\.rawValue).joined(separator: ", ")
            throw member.error("unknown state; expected an object with one of \(words)")
        }
        let inner = Member(location: "\(member.location).\(one.name)", value: one.value)
        return (state, try inner.object().required("timestamp").time())
    }

    /// A name in a form that logs and replies may contain.
    private static func shown(_ name: String) -> String {
        String(
            decoding: name.utf8.prefix(nameCharacters).map {
                (0x20...0x7E).contains($0) ? $0 : UInt8(ascii: "?")
            }, as: UTF8.self)
    }
}

/// A value in the list with its location.
private struct Member {
    let location: String
    let value: JSONValue

    func error(_ text: String) -> LogListError {
        LogListError(location: location, text: text)
    }

    func object() throws(LogListError) -> Member {
        guard case .object = value else {
            throw error("\(value.name); expected an object")
        }
        return self
    }

    /// A member; `nil` if it is absent or null.
    func optional(_ name: String) -> Member? {
        guard let inner = value[name], inner != .null else { return nil }
        return Member(location: location.isEmpty ? name : "\(location).\(name)", value: inner)
    }

    func required(_ name: String) throws(LogListError) -> Member {
        guard let inner = optional(name) else {
            throw Member(location: location.isEmpty ? name : "\(location).\(name)", value: .null)
                .error("it is missing")
        }
        return inner
    }

    /// The elements of a list, each created when it is requested.
    func elements() throws(LogListError) -> some Sequence<Member> {
        guard case .array(let values) = value else {
            throw error("\(value.name); expected an array")
        }
        return values.enumerated().lazy.map { Member(location: "\(location)[\($0)]", value: $1) }
    }

    func text() throws(LogListError) -> String {
        guard case .string(let text) = value else {
            throw error("\(value.name); expected a string")
        }
        return text
    }

    func base64() throws(LogListError) -> [UInt8] {
        let text = try text()
        guard let bytes = Base64.decode(text.utf8), !bytes.isEmpty else {
            throw error("not valid; expected base64")
        }
        return bytes
    }

    /// Seconds since 1970.
    func time() throws(LogListError) -> Int64 {
        let text = try text()
        guard let seconds = CivilDate.secondsSince1970(rfc3339: text.utf8) else {
            throw error("not valid; expected a time such as 2026-01-01T00:00:00Z")
        }
        return seconds
    }
}
