import CMalloc
import Glibc

/// What the process has.
struct Resources: Sendable {
    var descriptors: Int
    var sockets: Int
    /// The names of the threads, sorted.
    var threads: [String]
    var residentKiB: Int
    /// What has been allocated and not freed.
    var allocatedKiB: Int

    /// Counts, after what is free has been given back to the system.
    static func now() -> Resources {
        malloc_trim(0)
        // The folder itself is open while it is read.
        let links = entries("/proc/self/fd").compactMap { link("/proc/self/fd/\($0)") }
        let threads = entries("/proc/self/task").map { firstLine("/proc/self/task/\($0)/comm") }
        let resident = firstLine("/proc/self/statm").split(separator: " ")
        return Resources(
            descriptors: links.count, sockets: links.count { $0.hasPrefix("socket:") },
            threads: threads.sorted(),
            residentKiB: (resident.count > 1 ? Int(resident[1]) ?? 0 : 0) * 4,
            allocatedKiB: Int(mallinfo2().uordblks) / 1024)
    }
}

/// The names in a folder.
func entries(_ path: String) -> [String] {
    guard let folder = opendir(path) else { return [] }
    defer { closedir(folder) }
    var names: [String] = []
    while let entry = readdir(folder) {
        let name = withUnsafeBytes(of: entry.pointee.d_name) {
            String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
        }
        if name != ".", name != ".." { names.append(name) }
    }
    return names
}

/// Where a link leads, if it still is one.
private func link(_ path: String) -> String? {
    var buffer = [UInt8](repeating: 0, count: 256)
    let count = buffer.withUnsafeMutableBytes { buffer in
        buffer.baseAddress.map { readlink(path, $0.assumingMemoryBound(to: CChar.self), 255) }
    }
    guard let count, count >= 0 else { return nil }
    return String(decoding: buffer.prefix(count), as: UTF8.self)
}

func contents(of path: String) -> [UInt8] {
    guard let file = fopen(path, "r") else { return [] }
    defer { fclose(file) }
    var bytes = [UInt8](repeating: 0, count: 1 << 16)
    let count = fread(&bytes, 1, bytes.count, file)
    return Array(bytes.prefix(count))
}

private func firstLine(_ path: String) -> String {
    String(decoding: contents(of: path).prefix { $0 != 10 }, as: UTF8.self)
}
