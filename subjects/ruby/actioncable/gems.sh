#!/bin/sh
# Installs the gems for JRuby into $GEM_HOME, in the versions that Debian has for MRI where they exist for Java. All
# are pinned, so that nothing newer is fetched.
set -eu

exec jruby -S gem install --no-document --ignore-dependencies \
    actioncable:6.1.7.10 actionpack:6.1.7.10 actionview:6.1.7.10 activesupport:6.1.7.10 railties:6.1.7.10 \
    builder:3.2.4 concurrent-ruby:1.1.10 crass:1.0.6 erubi:1.9.0 i18n:1.10.0 loofah:2.19.1 method_source:1.0.0 \
    minitest:5.15.0 nio4r:2.5.8 nokogiri:1.13.10 puma:5.6.5 racc:1.6.2 rack:2.2.22 rack-test:2.0.2 \
    rails-dom-testing:2.0.3 rails-html-sanitizer:1.4.4 rake:13.0.6 thor:1.2.1 tzinfo:2.0.5 \
    websocket-driver:0.7.5 websocket-extensions:0.1.5 zeitwerk:2.6.1
