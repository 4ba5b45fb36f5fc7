import ArgumentParser
import Documents
import HTTPCore

/// What is stored, page by page, from the running gateway.
struct EntryPages {
    let gateway: RunningGateway
    /// Only of these hosts; `nil` for all.
    var host: String?
    var limit = 1000
    /// Whether only what is in memory is listed, whatever the state of the disk.
    var inMemoryOnly = false

    /// Calls `body` with each entry. Exits with 2 if the gateway does not answer.
    /// - Throws: `DiskUnreadableError` if what is on disk would be missing, before or after some
    ///   entries.
    func visit(_ body: (DocumentValue) throws -> Void) throws {
        var cursor: String?
        repeat {
            var path = "/api/v1/cache/entries?limit=\(limit)"
            if let host { path += "&host=\(queryEncoded(host))" }
            if let cursor { path += "&cursor=\(queryEncoded(cursor))" }
            if inMemoryOnly { path += "&tier=memory" }
            guard let page = try gateway.look(path).value else {
                writeError("what the gateway sends is no page of the cache")
                throw ExitCode(2)
            }
            for entry in page.list("entries") { try body(entry) }
            cursor = page["next"]?.text
        } while cursor != nil
    }

    /// The same for those to whom a part would be a wrong answer: exits with 2 if what is on disk
    /// would be missing.
    func visitAll(_ body: (DocumentValue) throws -> Void) throws {
        do {
            try visit(body)
        } catch let error as DiskUnreadableError {
            writeError("\(error.problem); --memory asks only for what is in memory")
            throw ExitCode(2)
        }
    }
}

extension EntryRow {
    /// An entry as the API shows it.
    init(_ value: DocumentValue) {
        func text(_ name: String) -> String? { value[name]?.text }
        func number(_ name: String) -> Int64? { value[name].map(\.count) }
        func seconds(_ name: String) -> Int64? { text(name).flatMap { TimeText.seconds($0) } }
        func joined(_ name: String, by separator: String) -> String? {
            let words = value.words(name)
            return words.isEmpty ? nil : words.joined(separator: separator)
        }
        self.init(
            url: text("url") ?? "", host: text("host") ?? "", method: text("method") ?? "GET",
            status: number("status") ?? 0, type: text("type"), bytes: number("bytes"),
            hits: number("hits") ?? 0, stored: seconds("stored"), expires: seconds("expires"),
            lastUsed: seconds("lastUsed"), trust: text("trust"), tags: joined("tags", by: " "),
            vary: joined("vary", by: ","), tiers: joined("tiers", by: ",") ?? "")
    }
}

/// Times as the API writes them.
enum TimeText {
    /// Seconds since 1970; `nil` for another text.
    static func seconds(_ text: String) -> Int64? {
        CivilDate.secondsSince1970(rfc3339: text.utf8)
    }

    /// A duration with its two largest units: `3 d 4 h`.
    static func duration(_ seconds: Int64) -> String {
        let units: [(Int64, String)] = [
            (seconds / 86_400, "d"), (seconds / 3_600 % 24, "h"), (seconds / 60 % 60, "min"),
            (seconds % 60, "s"),
        ]
        let shown = units.drop { $0.0 == 0 }.prefix(2).filter { $0.0 > 0 }
        return shown.isEmpty ? "0 s" : shown.map { "\($0.0) \($0.1)" }.joined(separator: " ")
    }
}
