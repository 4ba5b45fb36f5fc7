import ArgumentParser
import CLinux
import Documents
import Files
import Gateway

/// `pinfold cache export`: writes what is stored to a file.
struct CacheExportCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Write what is stored to a file.",
        discussion: """
            The file has heads and contents of everything that is stored, in memory and on disk, \
            with a checksum for each response. It is as confidential as the cache, and only its \
            owner may read it. It appears under its name when it is complete, and not at all if \
            something of what is stored cannot be read. Exits with 1 if it cannot be written, and \
            with 2 if the gateway cannot be asked, does not answer, or cannot read all that is \
            stored.
            """)

    @Argument(
        help: ArgumentHelp("The file to write; `-` is standard output.", valueName: "file"),
        completion: .file())
    var file: String

    @Flag(name: .shortAndLong, help: "Show no progress.")
    var silent = false

    @OptionGroup var options: AdministrationOptions

    func run() throws {
        let gateway = try options.gatewayOrExit()
        let status = try gateway.value(.get, "/api/v1/cache/stats")
        let total = max(
            status["diskEntries"]?.count ?? 0, status["memoryEntries"]?.count ?? 0)
        let progress = CountProgress("responses", total: total, isOn: !silent)
        let output = try ArchiveOutput(file)
        var reader = ArchiveReader()
        var count: Int64 = 0
        var slices: Int64 = 0
        var isSlice = false
        var intact: Int64 = 0
        let session = TransferSession()
        var piece = 0
        while true {
            let bytes = try session.export(piece, from: gateway)
            guard !bytes.isEmpty else { break }
            let before = count + slices
            do throws(ArchiveError) {
                try reader.read(bytes) { (record) throws(ArchiveError) in
                    switch record.kind {
                    case .entry: isSlice = false
                    case .slice: isSlice = true
                    case .entryEnd: if isSlice { slices += 1 } else { count += 1 }
                    case .content: break
                    case .archiveEnd: intact = record.bytes.reduce(0) { $0 << 8 | Int64($1) }
                    }
                }
            } catch {
                writeError("what the gateway sends is no archive: \(error)")
                throw ExitCode(2)
            }
            try output.write(bytes)
            progress.add(count + slices - before)
            piece += 1
        }
        progress.end()
        guard reader.isComplete else {
            writeError("the gateway has ended the export too early")
            throw ExitCode(2)
        }
        try output.finish()
        writeToStandardError(
            "\(count) \(count == 1 ? "response" : "responses")\(Self.text(slices: slices)) "
                + "exported\n")
        if count + slices > intact {
            writeWarning("\(count + slices - intact) of them damaged: an import leaves them out")
        }
    }
}

extension CacheExportCommand {
    /// ` with 5 slices`; nothing if there are none.
    fileprivate static func text(slices count: Int64) -> String {
        count == 0 ? "" : " with \(count) \(count == 1 ? "slice" : "slices")"
    }
}

/// `pinfold cache import`: stores what a file has.
struct CacheImportCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "import",
        abstract: "Store the responses in a file that was exported.",
        discussion: """
            What was obtained under another trust configuration than the one in force for its URL \
            is left out: other pins, other roots, other rules. What is stored already is replaced. \
            Import only files that you trust as you trust the cache: whoever has written one \
            decides what clients get. Exits with 1 if the file cannot be read or is damaged, and \
            with 2 if the gateway cannot be asked or does not answer.
            """)

    @Argument(
        help: ArgumentHelp("The file to read; `-` is standard input.", valueName: "file"),
        completion: .file())
    var file: String

    @Flag(name: .shortAndLong, help: "Show no progress.")
    var silent = false

    @Flag(help: "Print the result in JSON.")
    var json = false

    @OptionGroup var options: AdministrationOptions

    /// Bytes of a request's content; the gateway takes 65536.
    private static let pieceBytes = 60_000

    func run() throws {
        let gateway = try options.gatewayOrExit()
        let input = try ArchiveInput(file)
        let progress = CountProgress("responses", isOn: !silent)
        let session = TransferSession()
        var piece = 0
        var done: Int64 = 0
        var value = DocumentValue.null
        while true {
            let bytes = try input.read(Self.pieceBytes)
            value = try session.import(bytes, piece, to: gateway)
            let counted = ["stored", "slices", "otherTrust", "damaged", "refused"].map {
                value[$0]?.count ?? 0
            }.reduce(0, +)
            progress.add(counted - done)
            done = counted
            if bytes.isEmpty { break }
            piece += 1
        }
        progress.end()
        writeToStandardOutput(json ? "\(value)\n" : Self.text(value))
        if value["damaged"]?.count ?? 0 > 0 { throw ExitCode(1) }
    }

    private static func text(_ value: DocumentValue) -> String {
        func number(_ name: String) -> Int64 { value[name]?.count ?? 0 }
        let slices = CacheExportCommand.text(slices: number("slices"))
        return "\(number("stored")) stored\(slices), "
            + "\(number("otherTrust")) of another trust left out, "
            + "\(number("damaged")) damaged, \(number("refused")) not accepted\n"
    }
}

/// A name for a transfer that no other has.
private struct TransferSession {
    private let name = String(UInt64.random(in: .min ... .max), radix: 16)

    private func query(_ piece: Int) -> String { "?session=\(name)&piece=\(piece)" }

    /// The bytes of a piece. Exits with 2 if there are none.
    func export(_ piece: Int, from gateway: RunningGateway) throws -> [UInt8] {
        do {
            return try gateway.look("/api/v1/cache/export" + query(piece)).body
        } catch let error as DiskUnreadableError {
            writeError("nothing is exported: \(error.problem)")
            throw ExitCode(2)
        }
    }

    func `import`(
        _ bytes: [UInt8], _ piece: Int, to gateway: RunningGateway
    ) throws -> DocumentValue {
        try gateway.value(
            .post, "/api/v1/cache/import" + query(piece),
            content: .init(bytes: bytes, type: "application/octet-stream"), failing: 1)
    }
}

/// A file that appears when it is complete, or standard output.
private final class ArchiveOutput {
    private let file: UnfinishedFile?
    private let descriptor: Int32

    init(_ path: String) throws {
        guard path != "-" else {
            (file, descriptor) = (nil, -1)
            return
        }
        do throws(FileError) {
            let made = try UnfinishedFile([], for: path, mode: 0o600)
            file = made
            descriptor = open_with_mode(
                made.unfinishedPath, O_WRONLY | O_APPEND | O_CLOEXEC, 0)
        } catch {
            writeError("\(error)")
            throw ExitCode(1)
        }
        if descriptor < 0 { throw fail() }
    }

    /// Removes what is not complete.
    deinit {
        if descriptor >= 0 { close(descriptor) }
        if !isFinished { file?.discard() }
    }

    private var isFinished = false

    private func fail() -> any Error {
        writeError("\(file?.path ?? "-"): \(String(cString: strerror(__errno_location().pointee)))")
        return ExitCode(1)
    }

    func write(_ bytes: [UInt8]) throws {
        guard file != nil else { return writeToStandardOutput(bytes) }
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes {
                CLinux.write(descriptor, $0.baseAddress, $0.count)
            }
            if count < 0 {
                guard __errno_location().pointee == EINTR else { throw fail() }
            } else {
                rest = rest.dropFirst(count)
            }
        }
    }

    func finish() throws {
        do throws(FileError) {
            try file?.finish()
        } catch {
            writeError("\(error)")
            throw ExitCode(1)
        }
        isFinished = true
    }
}

/// A file, or standard input.
private final class ArchiveInput {
    private let descriptor: Int32
    private let path: String

    init(_ path: String) throws {
        self.path = path
        descriptor =
            path == "-" ? STDIN_FILENO : open_with_mode(path, O_RDONLY | O_CLOEXEC, 0)
        guard descriptor >= 0 else { throw fail() }
    }

    deinit { if descriptor > STDIN_FILENO { close(descriptor) } }

    private func fail() -> any Error {
        writeError("\(path): \(String(cString: strerror(__errno_location().pointee)))")
        return ExitCode(1)
    }

    /// As many bytes as there are; none at the end.
    func read(_ count: Int) throws -> [UInt8] {
        var bytes: [UInt8] = []
        while bytes.count < count {
            var taken = 0
            bytes += [UInt8](unsafeUninitializedCapacity: count - bytes.count) { memory, filled in
                taken = CLinux.read(descriptor, memory.baseAddress, memory.count)
                filled = max(0, taken)
            }
            if taken < 0, __errno_location().pointee != EINTR { throw fail() }
            if taken == 0 { break }
        }
        return bytes
    }
}
