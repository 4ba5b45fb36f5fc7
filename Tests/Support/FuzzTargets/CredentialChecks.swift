import Authentication
import HTTPCore

extension FuzzTarget {
    /// A file of users, of groups and of tokens at once. What is refused is refused for a line of
    /// the file, on one line, and nothing of a line but the names in it is repeated.
    func checkCredentialsFile(_ bytes: [UInt8]) throws(FuzzCheckError) -> Bool {
        var isRead = false
        do throws(CredentialsFileError) {
            let file = try UserFile(path: "f", content: bytes)
            isRead = !file.isEmpty
            guard (file.decoy == nil) == file.isEmpty, file.users.allSatisfy(file.contains) else {
                throw CredentialsFileError(line: 0, "has a user without a hash", expected: "one")
            }
        } catch {
            try check(error, in: bytes)
        }
        do throws(CredentialsFileError) {
            let file = try GroupFile(path: "f", content: bytes)
            isRead = isRead || !file.names.isEmpty
        } catch {
            try check(error, in: bytes)
        }
        do throws(CredentialsFileError) {
            let file = try TokenFile(path: "f", content: bytes)
            isRead = isRead || !file.isEmpty
        } catch {
            try check(error, in: bytes)
        }
        return isRead
    }

    private func check(
        _ error: CredentialsFileError, in bytes: [UInt8]
    ) throws(FuzzCheckError) {
        let lines = bytes.split(separator: 0x0A, omittingEmptySubsequences: false)
        guard lines.indices.contains(error.line - 1) else {
            throw FuzzCheckError("a line that is not in the file: \(error)")
        }
        let text = Array("\(error.problem) \(error.expected)".utf8)
        guard !text.contains(0x0A), !error.expected.isEmpty else {
            throw FuzzCheckError("an error of several lines: \(error)")
        }
        // A secret that is no part of what errors always say.
        let rest = lines[error.line - 1].drop { $0 != UInt8(ascii: ":") }.dropFirst()
        let secret = Array(rest.prefix { !ASCII.isWhitespace($0) && $0 != 0x0D })
        guard secret.count >= 24 else { return }
        let repeats = (0...max(0, text.count - secret.count)).contains {
            text.dropFirst($0).starts(with: secret)
        }
        if repeats { throw FuzzCheckError("the secret is repeated: \(error)") }
    }

    /// The value of an Authorization field. What Basic proves is what its token encodes.
    func checkAuthorization(_ bytes: [UInt8]) throws(FuzzCheckError) -> Bool {
        guard let proof = WrittenProof(bytes.span) else { return false }
        let token = Array(bytes[proof.token])
        guard !token.isEmpty, proof.token.upperBound == bytes.count,
            token.allSatisfy({ 0x21...0x7E ~= $0 })
        else { throw FuzzCheckError("\(token) is a token") }
        guard case .basic = proof, let credentials = UserPassword(token: token.span) else {
            return proof.method == .bearer
        }
        let pair = Array(credentials.user.utf8) + [UInt8(ascii: ":")] + credentials.password
        guard Array(Base64.encode(pair).utf8) == token,
            pair.count <= 256 + 1 + UserPassword.maximumPasswordBytes,
            pair.allSatisfy({ $0 >= 0x20 && $0 != 0x7F })
        else { throw FuzzCheckError("\(credentials) is read from \(token)") }
        return true
    }
}
