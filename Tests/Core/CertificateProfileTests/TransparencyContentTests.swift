import Testing

@testable import Trust

@Suite("What logs sign of certificates")
struct TransparencyContentTests {
    private static func tlv(_ tag: UInt8, _ contents: [UInt8]...) -> [UInt8] {
        let body = Array(contents.joined())
        if body.count < 0x80 { return [tag, UInt8(body.count)] + body }
        if body.count < 0x100 { return [tag, 0x81, UInt8(body.count)] + body }
        return [tag, 0x82, UInt8(body.count >> 8), UInt8(body.count & 255)] + body
    }

    private static let identifier = tlv(6, [0x2B, 6, 1, 4, 1, 0xD6, 0x79, 2, 4, 2])

    /// The extension with timestamps.
    private static func timestamps(_ list: [UInt8], isCritical: Bool? = nil) -> [UInt8] {
        let flag = isCritical.map { tlv(1, [$0 ? 0xFF : 0]) } ?? []
        return tlv(0x30, identifier, flag, tlv(4, tlv(4, list)))
    }

    private static let other = tlv(0x30, tlv(6, [0x55, 0x1D, 17]), tlv(4, tlv(0x30, [])))
    private static let fields = tlv(0xA0, tlv(2, [2])) + tlv(2, [1]) + tlv(0x30, [])

    private static func signed(_ extensions: [UInt8]?) -> [UInt8] {
        tlv(0x30, fields, extensions.map { tlv(0xA3, tlv(0x30, $0)) } ?? [])
    }

    private static func certificate(_ signed: [UInt8]) -> [UInt8] {
        tlv(0x30, signed, tlv(0x30, []), tlv(3, [0, 1]))
    }

    @Test(arguments: [0, 1, 60, 100, 126, 127, 128, 200, 240, 255, 256, 1000, 40_000])
    func `it is all but the timestamps, with lengths that fit`(count: Int) throws {
        let list = (0..<count).map { UInt8($0 & 255) }
        for extensions in [
            Self.timestamps(list) + Self.other, Self.other + Self.timestamps(list),
            Self.other + Self.timestamps(list, isCritical: false),
        ] {
            let content = try #require(
                TransparencyContent(certificate: Self.certificate(Self.signed(extensions))))
            #expect(content.timestamps == list)
            #expect(content.signed == Self.signed(Self.other))
        }
        // Nothing else is there.
        let alone = TransparencyContent(
            certificate: Self.certificate(Self.signed(Self.timestamps(list))))
        #expect(alone?.signed == Self.signed(nil))
    }

    @Test func `certificates without timestamps have none`() throws {
        for extensions in [Self.other, nil] {
            let content = try #require(
                TransparencyContent(certificate: Self.certificate(Self.signed(extensions))))
            #expect(content.timestamps == nil)
            #expect(content.signed.isEmpty)
        }
    }

    @Test func `timestamps that are there twice, or are no octets, are refused`() {
        let one = Self.timestamps([1])
        let bad = [
            one + one, Self.tlv(0x30, Self.identifier), Self.tlv(0x30, Self.identifier, [5, 0]),
            Self.tlv(0x30, Self.identifier, Self.tlv(4, [1, 2, 3])),
            Self.tlv(0x30, Self.identifier, Self.tlv(4, Self.tlv(4, [1]) + [0])),
            Self.tlv(0x30, Self.identifier, Self.tlv(4, Self.tlv(4, [1]), Self.tlv(4, [1]))),
            Self.tlv(0x30, Self.identifier, Self.tlv(4, Self.tlv(4, [1])), [5, 0]),
        ]
        for extensions in bad {
            #expect(
                TransparencyContent(certificate: Self.certificate(Self.signed(extensions))) == nil)
        }
    }

    @Test func `a truncated certificate is refused`() {
        let whole = Self.certificate(Self.signed(Self.timestamps([1, 2, 3]) + Self.other))
        #expect(TransparencyContent(certificate: whole) != nil)
        for count in 0..<whole.count {
            #expect(TransparencyContent(certificate: Array(whole.prefix(count))) == nil)
        }
    }
}
