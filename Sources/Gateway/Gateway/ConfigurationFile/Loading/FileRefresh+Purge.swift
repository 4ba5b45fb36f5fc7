import PinfoldConfiguration

extension FileRefresh {
    /// - Parameter key: The key of the token's file, for messages.
    mutating func refresh(_ purge: inout PurgeConfiguration?, _ key: String) {
        guard let path = purge?.token?.path, paths.contains(path) else { return }
        do throws(FileRefreshError) {
            let content = try read(path, key, of: [path])
            do throws(BearerTokenError) {
                purge?.token = try BearerToken(path: path, content: content)
            } catch {
                throw FileRefreshError(
                    paths: [path],
                    description: "\(key): \(error.text(ofFile: quoted(path: path))); expected "
                        + BearerTokenError.expected)
            }
        } catch {
            problems.append(error)
        }
    }
}
