extension ResponseContent {
    /// The content as lines of text in UTF-8, as they arrive.
    ///
    ///     for try await line in response.content.lines { print(line) }
    public var lines: ContentLines { lines(atMost: ContentLines.standardBytes) }

    /// The content as lines of text in UTF-8, as they arrive.
    ///
    /// - Parameter maximum: The maximum length of a line in bytes. A longer one is an error,
    ///   ``ClientError/Reason/contentTooLong``.
    public func lines(atMost maximum: Int) -> ContentLines {
        ContentLines(content: self, maximum: maximum)
    }
}

/// The lines of a response's content. They end with LF, CRLF or CR, which is not a part of them. An
/// empty line at the end of the content is not one.
public struct ContentLines: AsyncSequence, Sendable {
    public typealias Element = String
    public typealias Failure = ClientError

    /// The maximum length of a line by default, in bytes.
    public static let standardBytes = 1 << 20

    let content: ResponseContent
    let maximum: Int

    public func makeAsyncIterator() -> Iterator {
        Iterator(
            content: content.makeAsyncIterator(), guardian: content.guardian,
            splitter: LineSplitter(maximum: maximum))
    }

    /// Iterates over the lines as they arrive.
    public struct Iterator: AsyncIteratorProtocol {
        var content: ResponseContent.Iterator
        let guardian: ResponseGuard
        var splitter: LineSplitter
        var isOver = false

        /// Returns the next line, or `nil` at the end.
        ///
        /// - Throws: ``ClientError`` if the content is interrupted, or a line is too long.
        public mutating func next() async throws(ClientError) -> String? {
            try await next(isolation: nil)
        }

        public mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(ClientError) -> String? {
            while true {
                if let line = splitter.next() { return String(decoding: line, as: UTF8.self) }
                if isOver { return nil }
                if splitter.isTooLong {
                    let error = ClientError(
                        .contentTooLong, "a line is longer than \(splitter.maximum) bytes")
                    guardian.channel.cancel()
                    guardian.isOver(error)
                    isOver = true
                    throw error
                }
                guard let part = try await content.next(isolation: actor) else {
                    isOver = true
                    splitter.finish()
                    continue
                }
                splitter.add(part)
            }
        }
    }
}

/// Divides bytes that arrive in parts into lines.
struct LineSplitter {
    let maximum: Int
    private var bytes: [UInt8] = []
    /// Where the next line begins, and up to where there is no end of it.
    private var start = 0
    private var searched = 0
    /// Whether a line feed at the beginning belongs to the end of the last line.
    private var skipsLineFeed = false
    private var isOver = false

    init(maximum: Int) { self.maximum = maximum }

    /// Whether the line that has begun is longer than allowed.
    private(set) var isTooLong = false

    mutating func add(_ part: [UInt8]) {
        bytes.removeFirst(start)
        searched -= start
        start = 0
        bytes += part
    }

    /// Nothing more is added.
    mutating func finish() { isOver = true }

    /// Returns the next line, or `nil` if more bytes are needed, or there is none.
    mutating func next() -> ArraySlice<UInt8>? {
        if skipsLineFeed, start < bytes.count {
            skipsLineFeed = false
            if bytes[start] == UInt8(ascii: "\n") {
                start += 1
                searched = max(searched, start)
            }
        }
        while searched < bytes.count {
            let byte = bytes[searched]
            guard byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r") else {
                searched += 1
                continue
            }
            skipsLineFeed = byte == UInt8(ascii: "\r")
            return take(to: searched, behind: searched + 1)
        }
        isTooLong = bytes.count - start > maximum
        guard isOver, start < bytes.count, !isTooLong else { return nil }
        return take(to: bytes.count, behind: bytes.count)
    }

    private mutating func take(to end: Int, behind next: Int) -> ArraySlice<UInt8>? {
        guard end - start <= maximum else {
            isTooLong = true
            return nil
        }
        defer { (start, searched) = (next, next) }
        return bytes[start..<end]
    }
}
