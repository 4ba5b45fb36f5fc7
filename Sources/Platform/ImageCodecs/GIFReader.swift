/// The blocks of a GIF file (GIF89a): walks over all of them, and locates the first picture.
struct GIFReader {
    private(set) var header: ImageHeader
    /// The first picture.
    private(set) var picture: Picture

    /// One picture within the whole image.
    struct Picture {
        var x = 0
        var y = 0
        var width = 0
        var height = 0
        var isInterlaced = false
        /// Where its colours are, three bytes each.
        var palette = 0..<0
        /// The index of the transparent colour.
        var transparent: UInt8?
        /// The number of bits of the shortest codes.
        var codeBits = 0
        /// Where its data sub-blocks begin.
        var data = 0
    }

    private var bytes: [UInt8]
    private var offset = 0
    private var globalPalette = 0..<0
    private var transparent: UInt8?

    init(_ bytes: [UInt8]) throws(ImageCodecError) {
        self.bytes = bytes
        header = ImageHeader(kind: .gif, width: 0, height: 0)
        header.frames = 0
        picture = Picture()
        try readScreen()
        try readBlocks()
        // Some encoders write a screen size smaller than the picture, or none.
        header.width = max(header.width, picture.x + picture.width)
        header.height = max(header.height, picture.y + picture.height)
    }

    private func number(_ size: Int, at offset: Int) throws(ImageCodecError) -> Int {
        guard let value = bytes.little(size, at: offset) else { throw .truncated(.gif) }
        return value
    }

    private mutating func readScreen() throws(ImageCodecError) {
        header.width = try number(2, at: 6)
        header.height = try number(2, at: 8)
        let flags = try number(1, at: 10)
        header.bitsPerSample = 8
        offset = 13
        if flags & 0x80 != 0 { globalPalette = try takePalette(flags) }
    }

    private mutating func takePalette(_ flags: Int) throws(ImageCodecError) -> Range<Int> {
        let length = 3 << (flags & 7 + 1)
        guard bytes.count - offset >= length else { throw .truncated(.gif) }
        defer { offset += length }
        return offset..<(offset + length)
    }

    private mutating func readBlocks() throws(ImageCodecError) {
        while true {
            switch try number(1, at: offset) {
            case 0x21:
                try readExtension()
            case 0x2C:
                try readPicture()
            case 0x3B where header.frames > 0:
                return
            default:
                throw .damaged(.gif)
            }
        }
    }

    private mutating func readExtension() throws(ImageCodecError) {
        let label = try number(1, at: offset + 1)
        // Graphic control: flags, a delay, and the transparent colour.
        if label == 0xF9, try number(1, at: offset + 2) == 4 {
            let flags = try number(1, at: offset + 3)
            let index = try number(1, at: offset + 6)
            transparent = flags & 1 != 0 ? UInt8(index) : nil
        }
        offset += 2
        try skipSubBlocks()
    }

    private mutating func skipSubBlocks() throws(ImageCodecError) {
        while true {
            let length = try number(1, at: offset)
            offset += 1 + length
            if length == 0 { return }
        }
    }

    private mutating func readPicture() throws(ImageCodecError) {
        var next = Picture()
        next.x = try number(2, at: offset + 1)
        next.y = try number(2, at: offset + 3)
        next.width = try number(2, at: offset + 5)
        next.height = try number(2, at: offset + 7)
        let flags = try number(1, at: offset + 9)
        offset += 10
        next.isInterlaced = flags & 0x40 != 0
        next.palette = flags & 0x80 != 0 ? try takePalette(flags) : globalPalette
        next.transparent = transparent
        transparent = nil
        next.codeBits = try number(1, at: offset)
        next.data = offset + 1
        guard (1...8).contains(next.codeBits), next.width > 0, next.height > 0 else {
            throw .damaged(.gif)
        }
        offset += 1
        try skipSubBlocks()
        if header.frames == 0 { picture = next }
        header.frames += 1
    }
}

extension GIFReader {
    /// Decodes the first picture in its position; the area around it is transparent.
    func decode() throws(ImageCodecError) -> Raster {
        let raster = try Raster(width: header.width, height: header.height)
        var codes = GIFCodes(bytes, from: picture.data, bits: picture.codeBits)
        var row = [UInt8](repeating: 0, count: picture.width)
        for index in 0..<picture.height {
            try codes.fill(&row)
            paint(row, at: picture.isInterlaced ? interlaced(index) : index, on: raster)
        }
        return raster
    }

    private func paint(_ row: [UInt8], at y: Int, on raster: Raster) {
        var target = ((picture.y + y) * raster.width + picture.x) * 4
        for index in row {
            let color = picture.palette.lowerBound + 3 * Int(index)
            if index != picture.transparent, color + 3 <= picture.palette.upperBound {
                for channel in 0..<3 { raster.pixels[target + channel] = bytes[color + channel] }
                raster.pixels[target + 3] = 255
            }
            target += 4
        }
    }

    /// The row that comes at this index: first every eighth, then those in the middle, and so on.
    private func interlaced(_ index: Int) -> Int {
        var index = index
        for (first, step) in [(0, 8), (4, 8), (2, 4), (1, 2)] {
            let rows = max(0, (picture.height - first + step - 1) / step)
            if index < rows { return first + index * step }
            index -= rows
        }
        return index
    }
}

/// GIF's variant of LZW: codes of growing length in sub-blocks, and the table that they build.
struct GIFCodes {
    private static let mostCodes = 4096

    private let bytes: [UInt8]
    private var offset: Int
    private var leftInBlock = 0
    private var buffer = 0
    private var bufferedBits = 0
    private let firstBits: Int
    private var codeBits: Int
    private var next: Int
    private var previous: Int?
    /// For each code: the code whose string it extends, and its last index.
    private var prefixes = [UInt16](repeating: 0, count: mostCodes)
    private var suffixes = [UInt8](repeating: 0, count: mostCodes)
    /// A string, in reverse.
    private var pending: [UInt8] = []

    init(_ bytes: [UInt8], from offset: Int, bits: Int) {
        self.bytes = bytes
        self.offset = offset
        firstBits = bits
        codeBits = bits + 1
        next = (1 << bits) + 2
        for value in 0..<(1 << bits) { suffixes[value] = UInt8(value) }
        pending.reserveCapacity(Self.mostCodes)
    }

    private var clear: Int { 1 << firstBits }

    /// Fills the row with the next colour indices.
    mutating func fill(_ row: inout [UInt8]) throws(ImageCodecError) {
        var index = 0
        while index < row.count {
            if let value = pending.popLast() {
                row[index] = value
                index += 1
            } else {
                try expand()
            }
        }
    }

    /// Reads one code, and leaves its string in `pending`.
    private mutating func expand() throws(ImageCodecError) {
        let code = try nextCode()
        if code == clear {
            codeBits = firstBits + 1
            next = clear + 2
            previous = nil
            return
        }
        // The end before all rows are complete, or a code that does not exist yet.
        guard code != clear + 1, code < next || (code == next && previous != nil) else {
            throw .damaged(.gif)
        }
        guard let before = previous else {
            guard code < clear else { throw .damaged(.gif) }
            pending.append(UInt8(truncatingIfNeeded: code))
            previous = code
            return
        }
        // A code that is just being created is the previous string followed by its own first index.
        let isNew = code == next
        if isNew { pending.append(0) }
        let first = push(isNew ? before : code)
        if isNew { pending[0] = first }
        if next < Self.mostCodes {
            prefixes[next] = UInt16(truncatingIfNeeded: before)
            suffixes[next] = first
            next += 1
            if next == 1 << codeBits, codeBits < 12 { codeBits += 1 }
        } else if isNew {
            throw .damaged(.gif)
        }
        previous = code
    }

    /// Pushes a code's string, in reverse, and returns its first index. Each prefix was created
    /// before the code that refers to it, so this terminates.
    private mutating func push(_ code: Int) -> UInt8 {
        var code = code
        while code > clear + 1 {
            pending.append(suffixes[code])
            code = Int(prefixes[code])
        }
        pending.append(suffixes[code])
        return suffixes[code]
    }

    private mutating func nextCode() throws(ImageCodecError) -> Int {
        while bufferedBits < codeBits {
            if leftInBlock == 0 {
                guard offset < bytes.count else { throw .truncated(.gif) }
                leftInBlock = Int(bytes[offset])
                offset += 1
                guard leftInBlock > 0 else { throw .damaged(.gif) }
            }
            guard offset < bytes.count else { throw .truncated(.gif) }
            buffer |= Int(bytes[offset]) << bufferedBits
            bufferedBits += 8
            offset += 1
            leftInBlock -= 1
        }
        defer {
            buffer >>= codeBits
            bufferedBits -= codeBits
        }
        return buffer & (1 << codeBits - 1)
    }
}
