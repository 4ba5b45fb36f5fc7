import HTTPCore

/// The field lines of a head while they are being changed. Lines that are not changed keep their
/// bytes, and all lines keep their order.
struct HeadLines {
    /// Bytes of the original head, or bytes that were written.
    enum Piece {
        case received(Range<Int>)
        case written([UInt8])
    }

    struct Line {
        var name: Piece
        /// From the colon up to and including the end of the line.
        var rest: Piece
        /// Whether Connection nominates it.
        var isNominated = false
    }

    private(set) var lines: [Line] = []
    /// Whether anything was changed.
    private(set) var isChanged = false

    /// The lines of a parsed head.
    init(_ fields: borrowing FieldSection) {
        lines.reserveCapacity(fields.count + 8)
        for index in 0..<fields.count {
            let field = fields[index]
            let isLast = index + 1 == fields.count
            let end = isLast ? fields.end : fields[index + 1].name.start
            lines.append(
                Line(
                    name: .received(field.name.indices),
                    rest: .received(Int(field.name.end)..<Int(end)),
                    isNominated: field.isNominated))
        }
    }

    /// The lines from `start` up to the end of `head`, which is well-formed and has no empty line.
    init(from start: Int, of head: Span<UInt8>) {
        var position = start
        while position < head.count {
            let begin = position
            while position < head.count, head[position] != UInt8(ascii: "\n") { position += 1 }
            position = min(position + 1, head.count)
            var colon = begin
            while colon < position, head[colon] != UInt8(ascii: ":") { colon += 1 }
            lines.append(
                Line(name: .received(begin..<colon), rest: .received(colon..<position)))
        }
    }

    /// Whether the line has this name.
    func isNamed(_ name: HeadName, at index: Int, in head: Span<UInt8>) -> Bool {
        switch lines[index].name {
        case .received(let range): head.extracting(range).equals(lowercase: name.lowercase.span)
        case .written(let bytes): bytes.span.equals(lowercase: name.lowercase.span)
        }
    }

    /// Whether the line has this name, or one with `_` in place of a `-`.
    func isLike(_ name: HeadName, at index: Int, in head: Span<UInt8>) -> Bool {
        func isLike(_ own: Span<UInt8>) -> Bool {
            guard own.count == name.lowercase.count else { return false }
            for index in own.indices {
                let byte = own[index] == UInt8(ascii: "_") ? UInt8(ascii: "-") : own[index]
                guard ASCII.lowercased(byte) == name.lowercase[index] else { return false }
            }
            return true
        }
        switch lines[index].name {
        case .received(let range): return isLike(head.extracting(range))
        case .written(let bytes): return isLike(bytes.span)
        }
    }

    /// Whether any line has this name. Fields that Connection nominates end here and do not count.
    func contains(_ name: HeadName, in head: Span<UInt8>) -> Bool {
        var next = firstIndex(of: name, from: 0, in: head)
        while let index = next {
            if !lines[index].isNominated { return true }
            next = firstIndex(of: name, from: index + 1, in: head)
        }
        return false
    }

    /// The values of the lines with this name, without surrounding whitespace.
    func values(_ name: HeadName, in head: Span<UInt8>) -> [[UInt8]] {
        var values: [[UInt8]] = []
        var next = firstIndex(of: name, from: 0, in: head)
        while let index = next {
            values.append(value(at: index, in: head))
            next = firstIndex(of: name, from: index + 1, in: head)
        }
        return values
    }

    /// The value of a line, without surrounding whitespace.
    func value(at index: Int, in head: Span<UInt8>) -> [UInt8] {
        switch lines[index].rest {
        case .received(let range): Self.value(head.extracting(range))
        case .written(let bytes): Self.value(bytes.span)
        }
    }

    private static func value(_ rest: Span<UInt8>) -> [UInt8] {
        var start = min(1, rest.count)
        var end = rest.count
        while start < end, rest[start] <= 0x20 { start += 1 }
        while start < end, rest[end - 1] <= 0x20 { end -= 1 }
        return Array(copying: rest.extracting(start..<end))
    }

    /// Removes all lines with this name; returns whether there were any.
    @discardableResult
    mutating func remove(_ name: HeadName, in head: Span<UInt8>) -> Bool {
        guard let first = firstIndex(of: name, from: 0, in: head) else { return false }
        var kept = first
        for index in (first + 1)..<lines.count where !isNamed(name, at: index, in: head) {
            lines[kept] = lines[index]
            kept += 1
        }
        lines.removeLast(lines.count - kept)
        isChanged = true
        return true
    }

    /// The first line with this name, from an index on. Most searches find nothing.
    private func firstIndex(of name: HeadName, from start: Int, in head: Span<UInt8>) -> Int? {
        var index = start
        while index < lines.count {
            if isNamed(name, at: index, in: head) { return index }
            index += 1
        }
        return nil
    }

    /// Removes the line.
    mutating func remove(at index: Int) {
        lines.remove(at: index)
        isChanged = true
    }

    /// Changes the name of the line.
    mutating func rename(at index: Int, to name: [UInt8]) {
        lines[index].name = .written(name)
        isChanged = true
    }

    /// Changes the value of the line.
    mutating func setValue(at index: Int, to value: [UInt8]) {
        lines[index].rest = .written(Self.rest(value))
        isChanged = true
    }

    /// Appends a line.
    mutating func append(_ name: [UInt8], _ value: [UInt8]) {
        lines.append(Line(name: .written(name), rest: .written(Self.rest(value))))
        isChanged = true
    }

    /// Replaces all lines with this name by one, or appends it if there are none. A line that is
    /// the only one and already has the value stays as it is.
    mutating func set(_ name: HeadName, _ value: [UInt8], in head: Span<UInt8>) {
        guard let first = firstIndex(of: name, from: 0, in: head) else {
            return append(name.written, value)
        }
        var second = firstIndex(of: name, from: first + 1, in: head)
        if second == nil, self.value(at: first, in: head) == value { return }
        setValue(at: first, to: value)
        while let index = second {
            remove(at: index)
            second = firstIndex(of: name, from: index, in: head)
        }
    }

    private static func rest(_ value: [UInt8]) -> [UInt8] {
        var rest: [UInt8] = []
        rest.reserveCapacity(value.count + 4)
        rest += [UInt8(ascii: ":"), 0x20]
        rest += value
        rest += [0x0D, 0x0A]
        return rest
    }

    /// The size of all lines in bytes.
    var count: Int {
        lines.reduce(0) { $0 + Self.count($1.name) + Self.count($1.rest) }
    }

    private static func count(_ piece: Piece) -> Int {
        switch piece {
        case .received(let range): range.count
        case .written(let bytes): bytes.count
        }
    }

    /// Writes all lines.
    func write(to output: inout [UInt8], from head: Span<UInt8>) {
        for line in lines {
            Self.write(line.name, to: &output, from: head)
            Self.write(line.rest, to: &output, from: head)
        }
    }

    private static func write(
        _ piece: Piece, to output: inout [UInt8], from head: Span<UInt8>
    ) {
        switch piece {
        case .received(let range): output.append(head.extracting(range))
        case .written(let bytes): output += bytes
        }
    }
}

extension [UInt8] {
    /// Appends the bytes of a span.
    mutating func append(_ bytes: Span<UInt8>) {
        bytes.withUnsafeBufferPointer { append(contentsOf: $0) }
    }

    /// Copies the bytes of a span.
    init(copying bytes: Span<UInt8>) {
        self = bytes.withUnsafeBufferPointer { Array($0) }
    }
}

/// A field name to search for or write.
struct HeadName: Sendable, Equatable {
    /// The name as it is written.
    let written: [UInt8]
    let lowercase: [UInt8]

    init(_ text: String) {
        written = Array(text.utf8)
        lowercase = written.map(ASCII.lowercased)
    }

    static let accept = HeadName("Accept")
    static let acceptEncoding = HeadName("Accept-Encoding")
    static let acceptRanges = HeadName("Accept-Ranges")
    static let authorization = HeadName("Authorization")
    static let cacheControl = HeadName("Cache-Control")
    static let connection = HeadName("Connection")
    static let contentEncoding = HeadName("Content-Encoding")
    static let contentLength = HeadName("Content-Length")
    static let contentType = HeadName("Content-Type")
    static let entityTag = HeadName("ETag")
    static let expect = HeadName("Expect")
    static let forwardedUser = HeadName("X-Forwarded-User")
    static let ifMatch = HeadName("If-Match")
    static let ifModifiedSince = HeadName("If-Modified-Since")
    static let ifNoneMatch = HeadName("If-None-Match")
    static let ifRange = HeadName("If-Range")
    static let pragma = HeadName("Pragma")
    static let range = HeadName("Range")
    static let trailer = HeadName("Trailer")
    static let transferEncoding = HeadName("Transfer-Encoding")
    static let vary = HeadName("Vary")
}
