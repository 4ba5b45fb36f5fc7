import CLinux
import PinfoldTLS

/// Why an authority's files cannot be used, with a message for the user.
package enum AuthorityFileError: Error, Hashable, CustomStringConvertible {
    case certificate(String)
    case key(String)

    package var description: String {
        switch self {
        case .certificate(let text), .key(let text): text
        }
    }
}

extension CertificateAuthority {
    /// Reads an authority from its files.
    ///
    /// - Parameters:
    ///   - certificatePath: Absolute, or relative to the working folder.
    ///   - keyPath: Absolute, or relative to the working folder.
    ///   - now: The time at which the authority must be valid, in seconds since 1970, or `nil` to
    ///     skip this check.
    /// - Returns: The authority and the content of its files. `exposure` is a warning if users
    ///   other than the owner can read the key.
    package static func read(
        certificatePath: String, keyPath: String, now: Int64?
    ) throws(AuthorityFileError) -> (
        authority: CertificateAuthority, certificatePEM: [UInt8], keyPEM: [UInt8],
        exposure: String?
    ) {
        let certificate: [UInt8]
        let key: (content: [UInt8], exposure: String?)
        do {
            certificate = try ConfigurationFiles.read(certificatePath)
        } catch {
            throw .certificate("\(quoted(certificatePath)) \(error.text)")
        }
        do {
            key = try ConfigurationFiles.readSecret(keyPath)
        } catch {
            throw .key("\(quoted(keyPath)) \(error.text)")
        }
        do {
            let authority = try CertificateAuthority(
                certificatePEM: certificate, keyPEM: key.content)
            if let now { try authority.requireValid(at: now) }
            return (
                authority, certificate, key.content,
                key.exposure.map { "\(quoted(keyPath)) \($0)" }
            )
        } catch {
            guard error.concernsKey else {
                throw .certificate("\(quoted(certificatePath)): \(error)")
            }
            throw .key("\(quoted(keyPath)): \(error)")
        }
    }

    /// Reads the certificate that clients must trust: the first one in an authority's file.
    package static func readAnchor(
        certificatePath path: String
    ) throws(AuthorityFileError) -> (pem: [UInt8], der: [UInt8]) {
        let content: [UInt8]
        do {
            content = try ConfigurationFiles.read(path)
        } catch {
            throw .certificate("\(quoted(path: path)) \(error.text)")
        }
        guard let anchor = anchor(inPEM: content) else {
            throw .certificate("\(quoted(path: path)): \(AuthorityError.noCertificate)")
        }
        return anchor
    }
}
