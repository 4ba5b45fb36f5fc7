import Clocks
import Foundation
import PinfoldTLS

/// A folder with an authority in `ca.pem` and `ca.key`, for `days` from now and 40 days back.
func withAuthority<Result>(
    days: Int64 = 365, _ body: (String) throws -> Result
) throws -> Result {
    let now = Clock.wallSeconds()
    let files = try CertificateAuthority.make(
        AuthorityProfile(
            key: .ecdsaP256, commonName: "Test CA",
            validity: now - 40 * 86_400...now + days * 86_400))
    return try withTemporaryFolder { folder in
        try write(files.certificatePEM, to: folder + "/ca.pem", mode: 0o644)
        try write(files.keyPEM, to: folder + "/ca.key", mode: 0o600)
        return try body(folder)
    }
}

/// Writes a file with these permissions.
func write(_ bytes: [UInt8], to path: String, mode: Int) throws {
    try Data(bytes).write(to: URL(fileURLWithPath: path))
    try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
}
