/// Images for tests, written by independent code, so that decoders are not tested against
/// themselves.
package enum SampleImage {
    /// Four fields of 12 × 8 pixels: red, green, blue and white, like the files.
    package static let width = 24
    package static let height = 16

    /// The field's colour at a pixel.
    package static func color(_ x: Int, _ y: Int) -> [UInt8] {
        y < 8
            ? (x < 12 ? [255, 0, 0] : [0, 255, 0])
            : (x < 12 ? [0, 0, 255] : [255, 255, 255])
    }

    // MARK: PNG

    /// A PNG file of these rows of samples (without filter), uncompressed.
    package static func png(
        width: Int, height: Int, depth: UInt8 = 8, colorType: UInt8, rows: [[UInt8]],
        before: [[UInt8]] = []
    ) -> [UInt8] {
        let header =
            big(width, 4) + big(height, 4) + [depth, colorType, 0, 0, 0]
        var file: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
        file += chunk("IHDR", header)
        for part in before { file += part }
        file += chunk("IDAT", stored(rows.flatMap { [0] + $0 }))
        return file + chunk("IEND", [])
    }

    /// The four fields as PNG.
    package static func png() -> [UInt8] {
        let rows = (0..<height).map { y in (0..<width).flatMap { x in color(x, y) } }
        return png(width: width, height: height, colorType: 2, rows: rows)
    }

    /// A file of a few kilobytes that claims width × height pixels, and whose data is the beginning
    /// of that many zeros: repetitions of 258 bytes in 13 bits each.
    package static func bomb(width: Int, height: Int, bytes: Int = 4096) -> [UInt8] {
        var bits = BitWriter()
        bits.put(0b011, 3)  // The last block, with the fixed codes.
        bits.put(0b0000_1100, 8)  // A zero: the code 00110000, from its other end.
        while bits.bytes.count < bytes {
            bits.put(0b1010_0011, 8)  // 258 bytes: 11000101.
            bits.put(0, 5)  // From one byte before.
        }
        var file: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
        file += chunk("IHDR", big(width, 4) + big(height, 4) + [8, 6, 0, 0, 0])
        file += chunk("IDAT", [0x78, 0x01] + bits.bytes)
        return file + chunk("IEND", [])
    }

    package static func chunk(_ name: String, _ content: [UInt8]) -> [UInt8] {
        let body = Array(name.utf8) + content
        return big(content.count, 4) + body + big(Int(crc(body)), 4)
    }

    /// zlib's format (RFC 1950) with uncompressed blocks.
    private static func stored(_ bytes: [UInt8]) -> [UInt8] {
        var result: [UInt8] = [0x78, 0x01]
        var (low, high) = (1, 0)
        for byte in bytes {
            low = (low + Int(byte)) % 65521
            high = (high + low) % 65521
        }
        var rest = bytes[...]
        repeat {
            let part = rest.prefix(65535)
            rest = rest.dropFirst(part.count)
            result.append(rest.isEmpty ? 1 : 0)
            result += little(part.count, 2) + little(~part.count & 0xFFFF, 2) + part
        } while !rest.isEmpty
        return result + big(high << 16 | low, 4)
    }

    private static func crc(_ bytes: [UInt8]) -> UInt32 {
        var crc = ~UInt32(0)
        for byte in bytes {
            crc ^= UInt32(byte)
            for _ in 0..<8 { crc = crc >> 1 ^ (crc & 1 == 1 ? 0xEDB8_8320 : 0) }
        }
        return ~crc
    }

    // MARK: GIF

    /// A GIF file of pictures of one size: colour indices, row by row as they are stored.
    package static func gif(
        width: Int, height: Int, palette: [[UInt8]], pictures: [[UInt8]],
        transparent: UInt8? = nil, isInterlaced: Bool = false
    ) -> [UInt8] {
        var bits = 2
        while 1 << bits < palette.count { bits += 1 }
        var file = Array("GIF89a".utf8) + little(width, 2) + little(height, 2)
        file += [0x80 | UInt8(bits - 1), 0, 0] + palette.flatMap { $0 }
        file += [UInt8](repeating: 0, count: 3 * ((1 << bits) - palette.count))
        for picture in pictures {
            if let transparent { file += [0x21, 0xF9, 4, 1, 0, 0, transparent, 0] }
            file += [0x2C, 0, 0, 0, 0] + little(width, 2) + little(height, 2)
            file += [isInterlaced ? 0x40 : 0, UInt8(bits)]
            var codes = lzw(picture, bits: bits)[...]
            while !codes.isEmpty {
                let block = codes.prefix(255)
                file += [UInt8(block.count)] + block
                codes = codes.dropFirst(block.count)
            }
            file.append(0)
        }
        return file + [0x3B]
    }

    /// The four fields as GIF.
    package static func gif(transparent: UInt8? = nil) -> [UInt8] {
        let palette: [[UInt8]] = [[255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 255, 255]]
        let indices = (0..<height).flatMap { y in
            (0..<width).map { x in UInt8(palette.firstIndex(of: color(x, y)) ?? 0) }
        }
        return gif(
            width: width, height: height, palette: palette, pictures: [indices],
            transparent: transparent)
    }

    /// GIF's codes: a new one for each string that occurs, up to 4096, then from the beginning.
    private static func lzw(_ indices: [UInt8], bits: Int) -> [UInt8] {
        let clear = 1 << bits
        var output = BitWriter()
        var table: [[UInt8]: Int] = [:]
        var (codeBits, next) = (bits + 1, clear + 2)
        output.put(clear, codeBits)
        var string: [UInt8] = []
        func code(_ string: [UInt8]) -> Int? {
            string.count == 1 ? Int(string[0]) : table[string]
        }
        for index in indices {
            if string.isEmpty || code(string + [index]) != nil {
                string.append(index)
                continue
            }
            output.put(code(string) ?? 0, codeBits)
            table[string + [index]] = next
            next += 1
            if next > 1 << codeBits { codeBits += 1 }
            if next == 4096 {
                output.put(clear, codeBits)
                table = [:]
                (codeBits, next) = (bits + 1, clear + 2)
            }
            string = [index]
        }
        if let last = code(string) {
            output.put(last, codeBits)
            if next + 1 > 1 << codeBits, codeBits < 12 { codeBits += 1 }
        }
        output.put(clear + 1, codeBits)
        return output.bytes
    }

    private static func big(_ value: Int, _ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: value >> (8 * (count - 1 - $0))) }
    }

    private static func little(_ value: Int, _ count: Int) -> [UInt8] {
        big(value, count).reversed()
    }
}

/// Bits, the lowest of each byte first.
private struct BitWriter {
    private(set) var bytes: [UInt8] = []
    private var used = 8

    mutating func put(_ value: Int, _ count: Int) {
        for bit in 0..<count {
            if used == 8 {
                bytes.append(0)
                used = 0
            }
            bytes[bytes.count - 1] |= UInt8(value >> bit & 1) << used
            used += 1
        }
    }
}
