import CLinux
import ContentCoding
import Files

/// Why a log cannot be read.
struct LogInputError: Error, CustomStringConvertible {
    let description: String

    init(_ path: String, _ problem: String) { description = "\(path): \(problem)" }
}

/// The lines of a log: a file, whether compressed by gzip or not, or `-`, standard input.
struct LogInput {
    /// The longest line, in bytes: a head of the largest size, with every byte escaped.
    static let maximumLine = 1 << 22
    private static let blockBytes = 256 << 10

    let path: String

    /// Reads all lines, without their line feeds. A line that is too long is passed as an empty
    /// one.
    func forEachLine(_ body: (UnsafeRawBufferPointer) throws -> Void) throws {
        let descriptor = try opened()
        defer { if path != "-" { close(descriptor) } }
        var splitter = LineSplitter(maximum: Self.maximumLine)
        var block = [UInt8](repeating: 0, count: Self.blockBytes)
        var begin: [UInt8] = []
        // Two bytes say what it is.
        while begin.count < 2, case let count = try read(descriptor, into: &block), count > 0 {
            begin += block[..<count]
        }
        guard begin.starts(with: [0x1F, 0x8B]) else {
            try begin.withUnsafeBytes { try splitter.feed($0, body) }
            while case let count = try read(descriptor, into: &block), count > 0 {
                try block.withUnsafeBytes {
                    try splitter.feed(UnsafeRawBufferPointer(rebasing: $0[..<count]), body)
                }
            }
            return try splitter.finish(body)
        }
        var decoder: StreamDecoder
        do throws(ContentCodingError) {
            decoder = try StreamDecoder([.gzip])
            decoder.feed(begin)
        } catch { throw damaged(error) }
        var isAtEnd = false
        while !isAtEnd {
            while let part = try next(of: &decoder) {
                try part.withUnsafeBytes { try splitter.feed($0, body) }
            }
            let count = try read(descriptor, into: &block)
            isAtEnd = count == 0
            if count > 0 { decoder.feed(Array(block[..<count])) }
        }
        do throws(ContentCodingError) { try decoder.finish() } catch { throw damaged(error) }
        try splitter.finish(body)
    }

    private func next(of decoder: inout StreamDecoder) throws(LogInputError) -> [UInt8]? {
        do throws(ContentCodingError) { return try decoder.next() } catch { throw damaged(error) }
    }

    private func damaged(_ error: ContentCodingError) -> LogInputError {
        LogInputError(path, "the gzip data is damaged or incomplete: \(error)")
    }

    private func opened() throws(LogInputError) -> Int32 {
        if path == "-" { return STDIN_FILENO }
        let descriptor = uninterrupted { open_with_mode(path, O_RDONLY | O_CLOEXEC | O_NOCTTY, 0) }
        guard descriptor >= 0 else { throw failure(-descriptor) }
        return descriptor
    }

    private func read(_ descriptor: Int32, into block: inout [UInt8]) throws(LogInputError) -> Int {
        let count = block.withUnsafeMutableBytes { block in
            uninterrupted { CLinux.read(descriptor, block.baseAddress, block.count) }
        }
        guard count >= 0 else { throw failure(Int32(-count)) }
        return count
    }

    private func failure(_ code: Int32) -> LogInputError {
        LogInputError(path, "cannot be read: \(String(cString: strerror(code)))")
    }
}

/// Cuts bytes that come in blocks into lines.
struct LineSplitter {
    let maximum: Int
    /// The beginning of a line whose end has not come.
    private var rest: [UInt8] = []
    private var isTooLong = false

    init(maximum: Int) { self.maximum = maximum }

    /// Takes the next bytes, and passes the lines that are complete then.
    mutating func feed(
        _ block: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) throws -> Void
    ) rethrows {
        var start = 0
        while start < block.count, let base = block.baseAddress {
            guard let found = memchr(base + start, 0x0A, block.count - start) else {
                return keep(block[start...])
            }
            let end = UnsafeRawPointer(found) - base
            if rest.isEmpty, !isTooLong {
                try body(UnsafeRawBufferPointer(rebasing: block[start..<end]))
            } else {
                keep(block[start..<end])
                try endLine(body)
            }
            start = end + 1
        }
    }

    /// Passes the last line, if it has no line feed.
    mutating func finish(_ body: (UnsafeRawBufferPointer) throws -> Void) rethrows {
        if !rest.isEmpty || isTooLong { try endLine(body) }
    }

    private mutating func keep(_ part: Slice<UnsafeRawBufferPointer>) {
        if isTooLong { return }
        guard rest.count + part.count <= maximum else {
            isTooLong = true
            rest = []
            return
        }
        rest.append(contentsOf: part)
    }

    private mutating func endLine(_ body: (UnsafeRawBufferPointer) throws -> Void) rethrows {
        defer {
            rest.removeAll(keepingCapacity: true)
            isTooLong = false
        }
        try rest.withUnsafeBytes { try body($0) }
    }
}
