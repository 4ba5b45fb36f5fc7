import TestSupport
import Testing

@testable import Gateway

/// By what machines are told apart whose systems trust other certificates.
@Suite("A digest of the system's roots")
struct SystemRootsDigestTests {
    // Enough of a certificate: a sequence of a sequence that begins with a version, and another
    // one.
    private let certificates = ["MAcwBaADAgEC", "MAcwBaADAgEB", "MAcwBaADAgEA"].map {
        "-----BEGIN CERTIFICATE-----\n\($0)\n-----END CERTIFICATE-----\n"
    }

    private func number(_ files: [String: String]) throws -> UInt64? {
        let made = TemporaryFolder()
        for (name, text) in files { try made.write(text, to: name) }
        return SystemRootsDigest(file: made.file("cert.pem"), folders: [made.path]).number
    }

    @Test func `is the same for the same certificates, however they are kept`() throws {
        let whole = try #require(try number(["cert.pem": certificates.joined()]))
        #expect(try number(["cert.pem": certificates.reversed().joined()]) == whole)
        #expect(
            try number(["cert.pem": certificates.joined(separator: "# of somebody\n")]) == whole)
        let otherwise = certificates.joined().replacing("ADAg", with: "AD\nAg")
            .replacing("\n", with: " \r\n")
        #expect(try number(["cert.pem": otherwise]) == whole)
        #expect(
            try number([
                "0a1b2c3d.0": certificates[0], "0a1b2c3d.1": certificates[1],
                "ffffffff.0": certificates[2],
            ]) == whole)
        // Whatever is in a folder by another name is not looked at, nor is a list of revocations.
        #expect(
            try number([
                "cert.pem": certificates.joined(), "00000000.0": certificates[1],
                "README": "", "0a1b2c3d.r0": "x", "other.pem": "y", "0a1b2c3.0": "z",
            ]) == whole)
    }

    @Test func `is another one for fewer, for others and for what cannot be read`() throws {
        let files = [
            ["cert.pem": certificates.joined()], ["cert.pem": certificates[0]],
            ["cert.pem": certificates[1]], ["00000000.0": certificates[2]], ["cert.pem": "strange"],
            ["cert.pem": "stranger"], [:],
        ]
        let numbers = try files.map { try number($0) }
        #expect(Set(numbers).count == files.count)
        #expect(!numbers.contains(nil))
    }

    @Test func `of several folders is that of all`() throws {
        let folders = [TemporaryFolder(), TemporaryFolder()]
        for (one, text) in zip(folders, certificates) { try one.write(text, to: "00000000.0") }
        let paths = folders.map(\.path)
        let both = SystemRootsDigest(file: "", folders: paths).number
        #expect(both == SystemRootsDigest(file: "", folders: paths.reversed()).number)
        #expect(both != SystemRootsDigest(file: "", folders: [paths[0]]).number)
    }
}
