import AccessPolicy
import CLinux
import Files
import PinfoldConfiguration

/// Why the files of a list cannot be used.
struct AccessListError: Error, Equatable {
    /// The file in question, as an index.
    var file: Int
    var text: String
    var expected: String
}

extension AccessList {
    /// The maximum size of a file of a list, in bytes.
    static let maximumBytes = 256 << 20
    /// A block takes some hundred microseconds to read; then other threads may run.
    private static let blockBytes = 16 << 10
    /// How many times files that change meanwhile are read.
    private static let attempts = 3

    /// Reads the files, block by block; their text is never in memory as a whole.
    ///
    /// - Parameter maximumBytes: of each file.
    /// - Throws: if a file cannot be read, or has no entries, unless it has only comments.
    func read(
        maximumBytes: Int = AccessList.maximumBytes
    ) throws(AccessListError) -> AccessList {
        for _ in 1..<Self.attempts {
            if let read = try readOnce(maximumBytes) { return read }
        }
        guard let read = try readOnce(maximumBytes) else {
            throw AccessListError(
                file: 0, text: "its files keep changing while they are read",
                expected: "files that are complete")
        }
        return read
    }

    /// Whether the files are as they were when they were read.
    var isCurrent: Bool {
        guard let version else { return false }
        return version
            == files.map { path in
                var status = stat()
                return stat(path, &status) == 0 ? Self.version(status) : []
            }
    }

    /// The list, or `nil` if a file has changed meanwhile.
    private func readOnce(_ maximumBytes: Int) throws(AccessListError) -> AccessList? {
        var list = AccessList(name: name, files: files, format: format)
        var builder = DomainListBuilder(
            key: .ofProcess, bytes: size(maximumBytes), pausing: { sched_yield() })
        var version: [[Int64]]? = []
        for (index, path) in files.enumerated() {
            guard
                let (report, status) = try Self.read(
                    path, index, format, into: &builder, maximumBytes)
            else { return nil }
            list.reports.append(report)
            version?.append(Self.version(status))
            // What is written within one tick of the clock is not told apart by its time.
            if !ConfigurationFiles.Version(status).isOld { version = nil }
            builder.endFile()
        }
        list.domains = builder.finish()
        list.version = version
        return list
    }

    /// Reads the entries again, for those who want to see them. Returns whether all could be read.
    func forEachEntry(into sink: inout some DomainListSink) -> Bool {
        for (index, path) in files.enumerated() {
            let read = try? Self.read(path, index, format, into: &sink, Self.maximumBytes)
            guard read != nil else { return false }
        }
        return true
    }

    /// What all files have together, as far as it can be said.
    private func size(_ maximumBytes: Int) -> Int {
        files.reduce(0) { sum, path in
            var status = stat()
            guard stat(path, &status) == 0 else { return sum }
            return sum + min(max(0, Int(status.st_size)), maximumBytes)
        }
    }

    /// Reads one file; `nil` if it has changed meanwhile.
    private static func read(
        _ path: String, _ index: Int, _ format: DomainListFormat,
        into sink: inout some DomainListSink, _ maximumBytes: Int
    ) throws(AccessListError) -> (DomainListReport, stat)? {
        var reader = DomainListReader(format)
        var status = stat()
        var count = 0
        var kind: String?
        do throws(FileError) {
            let file = try OpenFile(path)
            status = file.status
            kind = ConfigurationFiles.otherKind(file.kind)
            if kind == nil {
                count = try file.forEachBlock(of: blockBytes, most: maximumBytes) { block in
                    reader.read(block, into: &sink)
                    sched_yield()
                }
            }
            guard let after = file.currentStatus(), version(after) == version(status) else {
                return nil
            }
        } catch {
            throw AccessListError(
                file: index, text: "\(quoted(path: path)) cannot be read: \(error.reason)",
                expected: "a readable file")
        }
        if let kind {
            throw AccessListError(
                file: index, text: "\(quoted(path: path)) is \(kind), not a regular file",
                expected: "a readable file")
        }
        guard count <= maximumBytes else {
            throw AccessListError(
                file: index, text: "\(quoted(path: path)) is longer than \(maximumBytes) bytes",
                expected: "a smaller file")
        }
        let report = reader.finish(into: &sink)
        if let problem = report.problem(of: path) {
            throw AccessListError(
                file: index, text: problem.text, expected: problem.expected)
        }
        return (report, status)
    }

    private static func version(_ status: stat) -> [Int64] {
        [
            Int64(bitPattern: UInt64(status.st_dev)), Int64(bitPattern: UInt64(status.st_ino)),
            Int64(status.st_size), Int64(status.st_mtim.tv_sec), Int64(status.st_mtim.tv_nsec),
            Int64(status.st_ctim.tv_sec), Int64(status.st_ctim.tv_nsec),
        ]
    }

    // MARK: What is said about them

    /// Warnings about the files, by their indices.
    var warnings: [(file: Int, text: String)] {
        zip(reports.indices, zip(files, reports)).compactMap { index, file in
            file.1.warning(of: file.0).map { (index, $0) }
        }
    }

    /// The formats found in the files, each once.
    var formatsFound: [DomainListFormat] {
        reports.compactMap(\.format).reduce(into: []) {
            if !$0.contains($1) { $0.append($1) }
        }
    }
}

extension DomainListReport {
    /// Why a file cannot be used: it is empty, as one that was not written to its end, or has
    /// something else than a list.
    fileprivate func problem(of path: String) -> (text: String, expected: String)? {
        if entries > 0 { return nil }
        let name = quoted(path: path)
        if meaninglessLines > 0 {
            return (
                "\(name) has no entry, and \(meaning)",
                "names, networks, or only comments (format \(format?.rawValue ?? "auto"))"
            )
        }
        return hasComments ? nil : ("\(name) is empty", "at least one entry or comment")
    }

    fileprivate func warning(of path: String) -> String? {
        let name = quoted(path: path)
        if entries == 0 { return "\(name) has only comments, and so lists nothing" }
        guard meaninglessLines > 0 else { return nil }
        return "\(name), read as \(format?.rawValue ?? "a list"), has \(meaning)"
    }

    /// How many lines mean nothing, and which come first.
    private var meaning: String {
        var text =
            meaninglessLines == 1
            ? "a line that means nothing here: "
            : "\(meaninglessLines) lines that mean nothing here: "
        text += firstMeaningless.map { "line \($0.number) \($0.problem.text)" }
            .joined(separator: "; ")
        let rest = meaninglessLines - firstMeaningless.count
        return rest > 0 ? text + "; and \(rest) more" : text
    }
}
