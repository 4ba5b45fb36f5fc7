// swift-tools-version: 6.2
import PackageDescription

/// Every target is compiled in Swift 6 language mode and a warning is an error. Exclusive access to
/// class properties is checked at run time where the tests run, in debug builds; a release build
/// does without, for it is paid at every access on the hot path.
///
/// The optimizer's object outliner stays off. For a function that is compiled in two modules, as
/// what is inlined across modules may be, Swift 6.3.1 makes the function's array literals into
/// constants of the same names in both, numbered in an order of its own in each; the linker keeps
/// one, and the other module's code then reads another literal's elements (mended in
/// swiftlang/swift#88178). It costs no instructions here.
let strict: [SwiftSetting] = [
    .swiftLanguageMode(.v6), .treatAllWarnings(as: .error),
    .unsafeFlags(
        ["-enforce-exclusivity=unchecked", "-Xllvm", "-sil-disable-pass=object-outliner"],
        .when(configuration: .release)),
]

/// What each folder of `Sources` may import besides the standard library and `Synchronization`:
/// modules of this package that stand above it, and products of others. A folder is a module, or
/// one within a module; that may then import less, or what the rest of the module may not. Nothing
/// else says so: the targets below are made of it, and tests hold the files and the page on the
/// architecture to it.
let imports: KeyValuePairs<String, Set<String>> = [
    // Core: decisions as values. No system calls, no clock, no threads.
    "Core/HTTPCore": [],
    "Core/HTTP2": ["HTTPCore"],
    "Core/ProxyProtocols": ["HTTPCore"],
    "Core/ContentCoding": ["CBrotli", "CZlib", "CZstd", "HTTPCore"],
    "Core/CachePolicy": ["COpenSSL", "HTTPCore"],
    "Core/Trust": ["HTTPCore"],
    "Core/AccessPolicy": ["HTTPCore", "Trust"],
    "Core/Authentication": ["COpenSSL", "HTTPCore", "Trust"],
    "Core/RedisProtocol": ["HTTPCore"],
    "Core/PinfoldConfiguration": [
        "HTTPCore", "CachePolicy", "Trust", "AccessPolicy", "Authentication", "RedisProtocol",
    ],
    "Core/Documents": ["CExpat", "HTTPCore"],
    "Core/PinObservation": ["HTTPCore", "Trust", "Documents"],
    "Core/Transformation": [
        "HTTPCore", "ContentCoding", "CachePolicy", "PinfoldConfiguration", "Documents",
    ],
    "Core/JSONSchema": ["CRE2", "HTTPCore", "Documents", "Transformation"],
    "Core/Activity": [],
    "Core/SharedCache": ["COpenSSL", "HTTPCore", "CachePolicy"],
    // Platform: effects, one kind in each module.
    "Platform/Clocks": ["CLinux"],
    "Platform/Locking": ["CLinux"],
    "Platform/Threads": ["CLinux", "Clocks", "Locking"],
    "Platform/Files": ["CLinux"],
    "Platform/Supervision": ["CLinux", "Files"],
    "Platform/PasswordChecks": [
        "CArgon2", "CCrypt", "HTTPCore", "Authentication", "Clocks", "Locking", "Threads",
    ],
    "Platform/EventLoop": ["CLinux", "HTTPCore", "Clocks", "Locking"],
    "Platform/ImageCodecs": ["CImages"],
    "Platform/PinfoldTLS": [
        "CLinux", "COpenSSL", "CPublicSuffix", "HTTPCore", "Trust", "Clocks", "Locking",
    ],
    "Platform/PinfoldTLS/CertificateAuthority": [
        "COpenSSL", "HTTPCore", "Trust", "Clocks", "Locking", "Threads",
    ],
    "Platform/CacheStore": [
        "CLinux", "CSQLite", "HTTPCore", "CachePolicy", "Clocks", "Locking", "Threads", "Files",
    ],
    "Platform/PinfoldResolver": ["CAres", "CLinux", "HTTPCore", "Clocks", "Locking", "Threads"],
    "Platform/SharedCacheLevel": [
        "HTTPCore", "CachePolicy", "RedisProtocol", "SharedCache", "Clocks", "Locking", "Threads",
        "Files", "EventLoop", "PinfoldTLS", "CacheStore", "PinfoldResolver",
    ],
    // Engine: what carries an exchange out, for the gateway and the library.
    "Engine/PinfoldMetrics": ["HTTPCore"],
    "Engine/PinfoldEngine": [
        "CLinux", "HTTPCore", "HTTP2", "ProxyProtocols", "ContentCoding", "CachePolicy", "Trust",
        "AccessPolicy", "Authentication", "PinfoldConfiguration", "Documents", "Transformation",
        "Activity", "Clocks", "Locking", "EventLoop", "PinfoldTLS", "CacheStore", "PinfoldResolver",
        "PinfoldMetrics", "Logging",
        "RawStructuredFieldValues",
    ],
    // Client: the library.
    "Client/PinfoldClient": [
        "CInternationalNames", "CLinux", "HTTPCore", "ProxyProtocols", "ContentCoding", "Trust",
        "PinfoldConfiguration", "Documents", "Activity", "Clocks", "Locking", "Threads",
        "Files", "EventLoop", "PinfoldTLS", "CacheStore", "PinfoldResolver",
        "PinfoldMetrics", "PinfoldEngine", "CoreMetrics", "HTTPTypes", "Logging", "Tracing",
    ],
    "Client/PinfoldClient/EventStreams": ["COpenSSL", "CZlib", "HTTPCore"],
    "Client/PinfoldClient/HTTPAuthentication": ["COpenSSL", "HTTPCore"],
    "Client/PinfoldClient/Retries": ["HTTPCore"],
    "Client/PinfoldClient/Serialization": [
        "CLinux", "HTTPCore", "Documents", "Files", "HTTPTypes",
    ],
    // Coders for types of the caller's own: the one thing that is taken from Foundation.
    "Client/PinfoldClient/Serialization/Codable": [
        "Documents", "Locking", "FoundationEssentials", "HTTPTypes",
    ],
    "Client/PinfoldImages": [
        "CLinux", "HTTPCore", "Locking", "EventLoop", "ImageCodecs", "PinfoldClient", "HTTPTypes",
    ],
    // Gateway: listeners, the administration, the process.
    "Gateway/PinObserving": [
        "CLinux", "CSQLite", "HTTPCore", "Trust", "PinObservation", "Clocks", "Locking", "Threads",
        "Files", "PinfoldTLS", "PinfoldEngine",
    ],
    "Gateway/Imaging": [
        "CLinux", "PinfoldConfiguration", "Transformation", "Clocks", "Locking", "Threads",
        "Files", "ImageCodecs",
    ],
    "Gateway/PinReporting": [
        "CLinux", "HTTPCore", "Trust", "PinfoldConfiguration", "Clocks", "Locking", "Threads",
        "Files", "EventLoop", "PinfoldTLS", "PinfoldResolver", "PinfoldEngine", "PinObserving",
    ],
    "Gateway/Gateway": [
        "CInternationalNames", "CLinux", "CLivePage", "HTTPCore", "HTTP2", "ProxyProtocols",
        "ContentCoding", "CachePolicy", "Trust",
        "PinfoldConfiguration", "Documents", "Activity", "Clocks", "Locking", "Threads", "Files",
        "EventLoop", "PinfoldTLS", "CacheStore", "PinfoldResolver", "SharedCacheLevel",
        "PinfoldMetrics", "PinfoldEngine", "PinObserving", "PinReporting", "Logging",
    ],
    "Gateway/Gateway/ConfigurationFile": [
        "CAccounts", "CLinux", "CYAML", "HTTPCore", "CachePolicy", "Trust", "AccessPolicy",
        "Authentication", "RedisProtocol", "PinfoldConfiguration",
        "Documents", "JSONSchema", "SharedCache", "Clocks", "Files", "Supervision", "EventLoop",
        "PinfoldTLS",
    ],
    "Gateway/Gateway/Explaining": [
        "HTTPCore", "Trust", "Authentication", "PinfoldConfiguration", "Documents", "Activity",
        "Clocks", "PinfoldResolver", "PinfoldMetrics", "PinfoldEngine",
    ],
    "Gateway/Gateway/Fleet": [
        "HTTPCore", "PinfoldConfiguration", "Documents", "Clocks", "Locking", "SharedCacheLevel",
        "PinfoldMetrics", "PinReporting",
    ],
    "Gateway/Gateway/Handover": [
        "CLinux", "HTTPCore", "PinfoldConfiguration", "Clocks", "Locking", "Supervision",
        "EventLoop", "PinfoldTLS", "CacheStore", "PinfoldMetrics", "PinfoldEngine", "Logging",
    ],
    "Gateway/Gateway/Process": [
        "CLinux", "HTTPCore", "CachePolicy", "Trust", "AccessPolicy", "Authentication",
        "PinfoldConfiguration", "JSONSchema", "Activity", "Clocks", "Locking", "Threads", "Files",
        "Supervision",
        "PasswordChecks", "EventLoop", "PinfoldTLS", "CacheStore",
        "RedisProtocol", "SharedCache", "SharedCacheLevel",
        "PinfoldResolver", "PinfoldMetrics", "PinfoldEngine", "Imaging", "PinObservation",
        "PinObserving", "PinReporting", "Logging",
    ],
    // CommandLine: the program.
    "CommandLine/pinfold": [
        "CLinux", "CSQLite", "HTTPCore", "ContentCoding", "Trust", "Authentication",
        "PinfoldConfiguration", "Documents", "Transformation", "JSONSchema", "Clocks", "Locking",
        "Threads", "Files", "Supervision",
        "PasswordChecks", "EventLoop", "PinfoldTLS", "PinfoldMetrics", "PinfoldEngine",
        "PinfoldClient", "Imaging", "PinObservation", "PinObserving", "PinReporting", "Gateway",
        "ArgumentParser", "HTTPTypes",
    ],
]

/// The same for `Tests`.
let testImports: KeyValuePairs<String, Set<String>> = [
    // What the tests of several modules need.
    "Support/TestSupport": ["CLinux"],
    "Support/CacheTestSupport": [
        "CLinux", "TestSupport", "CachePolicy", "Clocks", "Locking", "CacheStore",
    ],
    "Support/EngineTestSupport": [
        "CLinux", "HTTPCore", "TestSupport", "Trust", "PinfoldConfiguration", "JSONSchema",
        "Activity", "EventLoop", "PinfoldTLS", "CacheStore", "PinfoldResolver", "PinfoldMetrics",
        "PinfoldEngine", "Gateway", "Logging",
    ],
    "Support/FuzzTargets": [
        "COpenSSL", "HTTPCore", "HTTP2", "ProxyProtocols", "ContentCoding", "Trust", "AccessPolicy",
        "Authentication", "PinfoldConfiguration", "Documents", "Transformation", "JSONSchema",
        "RedisProtocol", "SharedCache",
        "ImageCodecs", "PinfoldTLS", "PinfoldResolver", "PinfoldClient", "Gateway",
    ],
    "Support/ImageTestWorker": ["CLinux", "Imaging"],
    "Support/StoreBench": ["CLinux", "CacheTestSupport", "Clocks", "CacheStore"],
    "Support/ArchitectureTests": ["TestSupport"],
    // The tests.
    "Core/NotationTests": ["HTTPCore"],
    "Core/AddressingTests": ["HTTPCore"],
    "Core/ClientSharesTests": ["HTTPCore"],
    "Core/HTTPCoreTests": ["HTTPCore", "TestSupport"],
    "Core/HTTP2Tests": ["HTTPCore", "TestSupport", "HTTP2"],
    "Core/ProxyProtocolsTests": ["HTTPCore", "ProxyProtocols"],
    "Core/ContentCodingTests": ["ContentCoding"],
    "Core/CachePolicyTests": ["HTTPCore", "CachePolicy"],
    "Core/CertificateProfileTests": ["Trust"],
    "Core/PinningTests": ["HTTPCore", "Trust"],
    "Core/TLSWireTests": ["Trust"],
    "Core/AccessPolicyTests": ["HTTPCore", "AccessPolicy"],
    "Core/AuthenticationTests": [
        "COpenSSL", "HTTPCore", "TestSupport", "Trust", "Authentication",
    ],
    "Core/ConfigurationTests": [
        "HTTPCore", "TestSupport", "Trust", "RedisProtocol", "PinfoldConfiguration",
    ],
    "Core/DocumentsTests": ["TestSupport", "Documents"],
    "Core/PinObservationTests": ["HTTPCore", "Trust", "PinObservation"],
    "Core/TransformationTests": [
        "HTTPCore", "TestSupport", "ContentCoding", "PinfoldConfiguration", "Documents",
        "Transformation",
    ],
    "Core/JSONSchemaTests": ["Documents", "Transformation", "JSONSchema"],
    "Core/ActivityTests": ["Activity"],
    "Core/RedisProtocolTests": ["HTTPCore", "TestSupport", "RedisProtocol"],
    "Core/SharedCacheTests": ["TestSupport", "CachePolicy", "SharedCache"],
    "Core/FuzzTests": ["TestSupport", "FuzzTargets"],
    "Platform/ClocksTests": ["CLinux", "Clocks"],
    "Platform/LockingTests": ["CLinux", "Clocks", "Locking", "Threads"],
    "Platform/ThreadsTests": ["CLinux", "Locking", "Threads"],
    "Platform/PasswordChecksTests": [
        "CLinux", "HTTPCore", "Authentication", "Locking", "PasswordChecks",
    ],
    "Platform/FilesTests": ["CLinux", "TestSupport", "Files"],
    "Platform/SupervisionTests": ["CLinux", "TestSupport", "Supervision"],
    "Platform/EventLoopTests": [
        "CLinux", "HTTPCore", "TestSupport", "Clocks", "Locking", "Threads", "EventLoop",
    ],
    "Platform/ImageCodecsTests": ["CLinux", "TestSupport", "ImageCodecs"],
    "Platform/TLSTests": ["CLinux", "COpenSSL", "HTTPCore", "Trust", "Locking", "PinfoldTLS"],
    "Platform/CertificateAuthorityTests": [
        "CLinux", "COpenSSL", "HTTPCore", "Trust", "Clocks", "Locking", "PinfoldTLS",
        "TestSupport",
    ],
    "Platform/CacheStoreTests": [
        "CLinux", "HTTPCore", "TestSupport", "CacheTestSupport", "StoreBench", "CachePolicy",
        "Clocks", "Locking", "CacheStore",
    ],
    "Platform/SharedCacheLevelTests": [
        "CLinux", "HTTPCore", "TestSupport", "CacheTestSupport", "CachePolicy", "Trust",
        "RedisProtocol", "SharedCache", "Clocks", "Locking", "Threads", "EventLoop",
        "PinfoldTLS", "CacheStore", "PinfoldResolver", "SharedCacheLevel",
    ],
    "Platform/ResolverTests": [
        "CLinux", "HTTPCore", "TestSupport", "Clocks", "Locking", "PinfoldResolver",
    ],
    "Engine/MetricsTests": ["TestSupport", "PinfoldMetrics"],
    "Engine/EngineTests": [
        "CLinux", "COpenSSL", "HTTPCore", "HTTP2", "ProxyProtocols", "TestSupport",
        "EngineTestSupport", "ContentCoding", "CachePolicy", "Trust", "AccessPolicy",
        "Authentication", "PinfoldConfiguration",
        "Transformation", "JSONSchema", "Activity", "Clocks", "Threads", "EventLoop", "PinfoldTLS",
        "CacheStore", "PinfoldResolver", "PinfoldMetrics", "PinfoldEngine", "Logging",
        "RawStructuredFieldValues",
    ],
    "Client/RetriesTests": ["PinfoldClient"],
    "Client/SerializationTests": [
        "TestSupport", "Documents", "PinfoldClient", "FoundationEssentials", "HTTPTypes",
    ],
    "Client/CookiesTests": ["PinfoldClient"],
    "Client/HTTPAuthenticationTests": ["TestSupport", "PinfoldClient"],
    "Client/EventStreamsTests": ["TestSupport", "PinfoldClient"],
    "Client/ReachabilityTests": ["PinfoldClient"],
    "Client/PinfoldImagesTests": [
        "TestSupport", "ImageCodecs", "PinfoldClient", "PinfoldImages", "HTTPTypes",
    ],
    "Client/PinfoldClientTests": [
        "CLinux", "HTTPCore", "TestSupport", "ContentCoding", "Trust", "Documents", "Clocks",
        "Locking", "Threads", "EventLoop", "PinfoldTLS", "PinfoldResolver", "PinfoldEngine",
        "PinfoldClient", "PinfoldImages", "CoreMetrics", "FoundationEssentials", "HTTPTypes",
        "InMemoryTracing", "Logging", "MetricsTestKit", "Tracing",
    ],
    "Gateway/PinObservingTests": [
        "CLinux", "CSQLite", "HTTPCore", "TestSupport", "Trust", "PinObservation", "PinObserving",
    ],
    "Gateway/PinReportingTests": [
        "CLinux", "HTTPCore", "TestSupport", "EngineTestSupport", "Trust", "PinfoldConfiguration",
        "Locking", "Threads", "EventLoop", "PinfoldTLS", "PinfoldResolver", "PinfoldEngine",
        "PinReporting",
    ],
    "Gateway/ImagingTests": [
        "CLinux", "TestSupport", "ImageTestWorker", "PinfoldConfiguration", "Transformation",
        "Locking", "Threads", "ImageCodecs", "Imaging",
    ],
    "Gateway/ConfigurationFileTests": [
        "HTTPCore", "TestSupport", "Trust", "AccessPolicy", "RedisProtocol",
        "PinfoldConfiguration", "Documents", "Clocks", "Locking", "Files", "EventLoop",
        "PinfoldTLS", "SharedCacheLevel", "Gateway",
    ],
    "Gateway/AdminTests": [
        "HTTPCore", "EngineTestSupport", "ContentCoding", "Documents", "JSONSchema", "Locking",
        "PinfoldResolver", "PinfoldMetrics", "PinfoldEngine", "Gateway",
    ],
    "Gateway/GatewayTests": [
        "CLinux", "HTTPCore", "TestSupport", "CacheTestSupport", "EngineTestSupport", "Trust",
        "PinfoldConfiguration", "Documents", "Activity", "Locking", "Supervision", "EventLoop",
        "PinfoldTLS", "CacheStore", "PinfoldResolver", "SharedCacheLevel", "PinfoldMetrics",
        "PinfoldEngine", "PinReporting", "Gateway", "Logging",
    ],
    "CommandLine/PinToolsTests": [
        "TestSupport", "HTTPCore", "Trust", "PinfoldConfiguration", "PinObservation", "Gateway",
        "pinfold",
    ],
    "CommandLine/TrustCheckTests": ["HTTPCore", "pinfold"],
    "CommandLine/ClientCommandsTests": ["Locking", "HTTPTypes", "PinfoldClient", "pinfold"],
    "CommandLine/AdministrationTests": ["TestSupport", "Documents", "pinfold"],
    "CommandLine/ReplayTests": [
        "HTTPCore", "PinfoldConfiguration", "PinfoldEngine", "pinfold",
    ],
]

/// Of the imports, what other packages provide.
let products: [String: Target.Dependency] = [
    "ArgumentParser": .product(name: "ArgumentParser", package: "swift-argument-parser"),
    "CoreMetrics": .product(name: "CoreMetrics", package: "swift-metrics"),
    "HTTPTypes": .product(name: "HTTPTypes", package: "swift-http-types"),
    "InMemoryTracing": .product(name: "InMemoryTracing", package: "swift-distributed-tracing"),
    "Logging": .product(name: "Logging", package: "swift-log"),
    "MetricsTestKit": .product(name: "MetricsTestKit", package: "swift-metrics"),
    "RawStructuredFieldValues": .product(
        name: "RawStructuredFieldValues", package: "swift-http-structured-headers"),
    "Tracing": .product(name: "Tracing", package: "swift-distributed-tracing"),
]

/// Of the imports, what the toolchain provides.
let toolchain: Set<String> = ["FoundationEssentials"]

/// The targets of a table: one for each module, `Base/Layer/Module`.
func targets(
    in base: String, _ imports: KeyValuePairs<String, Set<String>>,
    make: (_ name: String, _ dependencies: [Target.Dependency], _ path: String) -> Target
) -> [Target] {
    let modules = imports.map { folder, _ in folder.split(separator: "/").prefix(2) }
    return modules.indices.filter { modules.firstIndex(of: modules[$0]) == $0 }.map { index in
        let folder = modules[index].joined(separator: "/")
        let all = imports.filter { $0.key == folder || $0.key.hasPrefix(folder + "/") }
            .reduce(into: Set()) { $0.formUnion($1.value) }.subtracting(toolchain)
        return make(
            String(modules[index].last ?? ""),
            all.sorted().map { products[$0] ?? .target(name: $0) }, base + "/" + folder)
    }
}

/// A module map and a header of shims over a library of the system; no logic.
func system(_ name: String, pkgConfig: String? = nil, _ debian: String...) -> Target {
    .systemLibrary(
        name: name, path: "Sources/C/" + name, pkgConfig: pkgConfig,
        providers: debian.isEmpty ? nil : [.apt(debian)])
}

let libraries: [Target] = [
    system("CLinux"),
    system("CAccounts"),
    system("COpenSSL", pkgConfig: "openssl", "libssl-dev"),
    system("CSQLite", pkgConfig: "sqlite3", "libsqlite3-dev"),
    system("CAres", pkgConfig: "libcares", "libc-ares-dev"),
    system("CPublicSuffix", pkgConfig: "libpsl", "libpsl-dev"),
    system("CInternationalNames", pkgConfig: "libidn2", "libidn2-dev"),
    system("CExpat", pkgConfig: "expat", "libexpat1-dev"),
    system("CCrypt", pkgConfig: "libcrypt", "libcrypt-dev"),
    system("CArgon2", pkgConfig: "libargon2", "libargon2-dev"),
    system("CYAML", pkgConfig: "yaml-0.1", "libyaml-dev"),
    system("CZlib", pkgConfig: "zlib", "zlib1g-dev"),
    system("CBrotli", pkgConfig: "libbrotlienc", "libbrotli-dev"),
    system("CZstd", pkgConfig: "libzstd", "libzstd-dev"),
    // The image libraries leave their functions by longjmp, which Swift must not see. AVIF's is
    // loaded at run time.
    .target(
        name: "CImages", path: "Sources/C/CImages",
        linkerSettings: [
            .linkedLibrary("jpeg"), .linkedLibrary("png16"), .linkedLibrary("webp"),
            .linkedLibrary("webpdemux"),
        ]),
    // The live page: files that the compiler puts into the program as they are.
    .target(name: "CLivePage", path: "Sources/C/CLivePage", exclude: ["page"]),
    // RE2 (libre2-dev) is C++: compiled expressions, as C.
    .target(
        name: "CRE2", path: "Sources/C/CRE2", linkerSettings: [.linkedLibrary("re2")]),
]

let package = Package(
    name: "pinfold",
    products: [
        .executable(name: "pinfold", targets: ["pinfold"]),
        .library(name: "PinfoldClient", targets: ["PinfoldClient"]),
        .library(name: "PinfoldImages", targets: ["PinfoldImages"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-distributed-tracing", from: "1.7.3"),
        .package(url: "https://github.com/apple/swift-http-structured-headers", from: "1.7.0"),
        .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
    ],
    targets: libraries
        + targets(in: "Sources", imports) { name, dependencies, path in
            var settings = strict
            if name == "HTTPCore" { settings.append(.enableExperimentalFeature("Lifetimes")) }
            return name == "pinfold"
                ? .executableTarget(
                    name: name, dependencies: dependencies, path: path, swiftSettings: settings)
                : .target(
                    name: name, dependencies: dependencies, path: path, swiftSettings: settings)
        }
        + targets(in: "Tests", testImports) { name, dependencies, path in
            switch name {
            // The process that decodes, for tests, which have no `pinfold` beside them; and a store
            // to be measured, which is killed.
            case "ImageTestWorker", "StoreBench":
                .executableTarget(
                    name: name, dependencies: dependencies, path: path, swiftSettings: strict)
            case _ where name.hasSuffix("Tests"):
                .testTarget(
                    name: name, dependencies: dependencies, path: path,
                    exclude: name == "ImageCodecsTests" ? ["Images"] : [], swiftSettings: strict)
            default:
                .target(name: name, dependencies: dependencies, path: path, swiftSettings: strict)
            }
        }
)
