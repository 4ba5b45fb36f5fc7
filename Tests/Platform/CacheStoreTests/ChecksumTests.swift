import CachePolicy
import CacheTestSupport
import Testing

@testable import CacheStore

@Suite("Checksums of what is stored")
struct ChecksumTests {
    @Test(
        arguments: [
            ([UInt8](), 0xef46_db37_51d8_e999, 0xc434_9fc9_3c01_0000),
            (Array("a".utf8), 0xd24e_c4f1_a98c_6e5b, 0x9a7c_6d2e_a455_68c9),
            (Array("abc".utf8), 0x44bc_2cf5_ad77_0999, 0x2ed0_f59d_6b43_ac8b),
            (Array("0123456789abcdef".utf8), 0x5c5b_90c3_4e37_6d0b, 0x5961_6d12_da43_1321),
            ([UInt8](repeating: 120, count: 31), 0x60dd_0d01_083b_99f0, 0x4c66_aeb6_53e8_836a),
            ([UInt8](repeating: 120, count: 32), 0xe2df_261f_c2ec_30eb, 0xabf0_1487_8933_40b0),
            ([UInt8](repeating: 120, count: 33), 0xb3fa_465f_5542_08a6, 0x3068_a8e9_ee0e_7b68),
            (
                (0..<5).flatMap { _ in (0...255).map { UInt8($0) } }, 0xafc1_84ad_7938_a354,
                0xf03d_bac0_c446_097e
            ),
        ] as [([UInt8], UInt64, UInt64)])
    func `xxHash64 gives the reference implementation's values`(
        _ bytes: [UInt8], _ plain: UInt64, _ seeded: UInt64
    ) {
        bytes.withUnsafeBytes {
            #expect(XXHash64.hash($0, seed: 0) == plain)
            #expect(XXHash64.hash($0, seed: 0x9E37_79B9_7F4A_7C15) == seeded)
        }
    }

    @Test func `xxHash64 does not depend on where the bytes lie`() {
        let bytes = body(200)
        let expected = bytes.withUnsafeBytes { XXHash64.hash($0, seed: 5) }
        for shift in 1..<9 {
            let moved = [UInt8](repeating: 0, count: shift) + bytes
            moved.withUnsafeBytes {
                let view = UnsafeRawBufferPointer(rebasing: $0[shift...])
                #expect(XXHash64.hash(view, seed: 5) == expected)
            }
        }
    }

    @Test func `every flipped bit, another id and another split change an entry's checksum`() {
        let record = body(90)
        let content = body(40, seed: 1)
        func sum(_ id: Int64, _ record: [UInt8], _ body: [UInt8]) -> Int64 {
            record.withUnsafeBytes { record in
                body.withUnsafeBytes { EntryRecord.sum(id: id, record: record, body: $0) }
            }
        }
        let right = sum(7, record, content)
        #expect(sum(8, record, content) != right)
        #expect(sum(7, Array(record.dropLast()), [record[89]] + content) != right)
        for bit in 0..<record.count * 8 {
            var damaged = record
            damaged[bit / 8] ^= 1 << UInt8(bit % 8)
            #expect(sum(7, damaged, content) != right)
        }
        for bit in 0..<content.count * 8 {
            var damaged = content
            damaged[bit / 8] ^= 1 << UInt8(bit % 8)
            #expect(sum(7, record, damaged) != right)
        }
    }

    private func record(_ change: (inout EntryRecord) -> Void = { _ in }) -> EntryRecord {
        var record = EntryRecord(
            keyCount: 10, varyCount: 3, headCount: 20, times: testTimes, policy: .max,
            bodyCount: 100, bodyID: 0, chunkBytes: 64)
        change(&record)
        return record
    }

    private func encoded(_ record: EntryRecord, text: Int? = nil) -> [UInt8] {
        var bytes = [UInt8](
            repeating: 1, count: EntryRecord.headerBytes + (text ?? record.textCount))
        bytes.withUnsafeMutableBytes { record.encode(to: $0) }
        return bytes
    }

    @Test func `a record is read back as it was written`() {
        for record in [
            record(),
            record {
                $0.bodyID = 9
                $0.bodyCount = 1 << 25
            },
        ] {
            let bytes = encoded(record)
            let inline = record.bodyID == 0 ? 100 : 0
            bytes.withUnsafeBytes { #expect(EntryRecord($0, inlineBytes: inline) == record) }
        }
    }

    @Test func `a record whose parts do not add up is refused`() {
        func refused(_ bytes: [UInt8], inline: Int) -> Bool {
            bytes.withUnsafeBytes { EntryRecord($0, inlineBytes: inline) == nil }
        }
        #expect(!refused(encoded(record()), inline: 100))
        #expect(refused(encoded(record()), inline: 99))
        #expect(refused(encoded(record(), text: 34), inline: 100))
        #expect(refused(encoded(record(), text: 32), inline: 100))
        #expect(refused(Array(encoded(record()).prefix(71)), inline: 100))
        #expect(refused(encoded(record { $0.bodyID = -1 }), inline: 0))
        #expect(
            refused(
                encoded(
                    record {
                        $0.bodyID = 1
                        $0.chunkBytes = 0
                    }), inline: 0))
        #expect(refused(encoded(record { $0.bodyID = 1 }), inline: 1))
        // One chunk more than a body may have.
        let most = UInt64(64 << 20)
        #expect(
            !refused(
                encoded(
                    record {
                        $0.bodyID = 1
                        $0.bodyCount = most
                    }), inline: 0))
        #expect(
            refused(
                encoded(
                    record {
                        $0.bodyID = 1
                        $0.bodyCount = most + 1
                    }), inline: 0))
        var layout = encoded(record())
        layout[0] = 2
        #expect(refused(layout, inline: 100))
    }
}
